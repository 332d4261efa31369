package redislock

import (
	"context"
	"strconv"

	"github.com/dibslock/dibs/driver"
)

// Acquire asks once for c.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c, err := c.Check(s.Facts())
	if err != nil {
		return driver.Grant{}, err
	}
	msgs, err := s.eval(ctx, acquireScript, c.Name, s.on(c.Name), s.with(c.Name, packClaim(c, s.inbox.channel)))
	if err != nil {
		return driver.Grant{}, err
	}
	a := read(c.Name, msgs)
	if a.err != nil {
		return driver.Grant{}, a.err
	}
	a.grant.TTL = c.TTL
	return a.grant, nil
}

// AcquireAll asks once for all of cs: it grants all or none, in one step.
func (s *Store) AcquireAll(ctx context.Context, cs []driver.Claim) ([]driver.Grant, error) {
	names := make(map[string]bool)
	keys, args := []string{s.keys.mark()}, []string{strconv.Itoa(len(cs))}
	var ttls []driver.Claim
	for _, c := range cs {
		c, err := c.Check(s.Facts())
		if err != nil {
			return nil, err
		}
		if names[c.Name] {
			return nil, driver.Rejectedf(c.Name, "the name is twice in one batch")
		}
		names[c.Name] = true
		c.Patience = 0
		ttls = append(ttls, c)
		keys = append(keys, s.keys.name(c.Name))
		args = append(args, packClaim(c, s.inbox.channel))
	}
	if len(cs) > s.Facts().MaxBatch {
		return nil, driver.Rejectedf("", "%d claims in one batch; at most %d are allowed", len(cs), s.Facts().MaxBatch)
	}
	if s.journal {
		keys = append(keys, s.keys.journal())
		for _, c := range cs {
			args = append(args, c.Name)
		}
	}
	msgs, err := s.eval(ctx, acquireAllScript, "", keys, args)
	if err != nil {
		return nil, err
	}
	return readAll(ttls, msgs)
}
