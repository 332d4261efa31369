package redislock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// Acquire asks once for c.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c, err := s.check(c)
	if err != nil {
		return driver.Grant{}, err
	}
	life := s.spansOf(c).life
	if c.From != "" {
		life = ""
	}
	e := s.newErrand(c.Name)
	e.about = [3]string{e.add(s.request(e.text, c)), life, s.queueing(c)}
	m, err := s.confirmed(ctx, c, e)
	if err != nil {
		return driver.Grant{}, err
	}
	a := read(c.Name, m)
	if a.err != nil {
		return driver.Grant{}, a.err
	}
	a.grant.TTL = c.TTL
	if a.fresh && c.Mode() != driver.Counted {
		a.grant.Fence = a.grant.Token
	}
	return a.grant, nil
}

// queueing is what acquire.lua wants to know of a claim that may wait: its
// patience and where its waiter hears; "" if its place has no short form.
func (s *Store) queueing(c driver.Claim) string {
	if s.keys.plain || c.Patience == 0 || c.Units != c.Capacity || c.From != "" || c.Keep != 0 || c.Delay != 0 || c.Barging {
		return ""
	}
	last := s.waits.Load()
	if last == nil || last.patience != c.Patience {
		last = &waits{c.Patience, fmt.Sprintf("%d %d %s ", micros(c.Patience), len(s.inbox.channel), s.inbox.channel)}
		s.waits.Store(last)
	}
	return last.text
}

// waits is what queueing returned last. Most claims of a program have the same.
type waits struct {
	patience time.Duration
	text     string
}

// AcquireAll asks once for all of cs: it grants all or none, in one step.
func (s *Store) AcquireAll(ctx context.Context, cs []driver.Claim) ([]driver.Grant, error) {
	facts := s.Facts()
	if len(cs) > facts.MaxBatch {
		return nil, driver.Rejectedf("", "%d claims in one batch; at most %d are allowed", len(cs), facts.MaxBatch)
	}
	cs = slices.Clone(cs)
	seen := make(map[string]bool)
	var names []string
	args := []string{strconv.Itoa(len(cs))}
	for i, c := range cs {
		c, err := s.check(c)
		if err != nil {
			return nil, err
		}
		if seen[c.Name] {
			return nil, driver.Rejectedf(c.Name, "the name is twice in one batch")
		}
		seen[c.Name] = true
		c.Patience = 0
		cs[i] = c
		names = append(names, c.Name)
		args = append(args, rueidis.BinaryString(s.request(nil, c)))
	}
	if len(cs) == 0 {
		return nil, s.enter(ctx)
	}
	m, err := s.eval(ctx, acquireAllScript, "", s.on(nil, names...), s.withAll(names, args))
	if err != nil {
		return nil, err
	}
	return readAll(cs, m)
}

// request appends c to p as scripts want it.
func (s *Store) request(p packer, c driver.Claim) packer {
	if s.keys.plain {
		c.Patience = 0 // there is no line
	}
	return p.request(c, s.spansOf(c), s.inbox.channel)
}
