package redislock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Renew proves claims and refreshes places, all in one call.
func (s *Store) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	if most := s.Facts().MaxBatch; len(cs) > most {
		return nil, driver.Rejectedf("", "%d claims in one renewal; at most %d are allowed", len(cs), most)
	}
	facts := s.Facts()
	proofs := make([]driver.Proof, len(cs))
	names := make([]string, 0, len(cs))
	args := append(make([]string, 0, 2*len(cs)+1), "")
	good := make([]int, 0, len(cs)) // which are asked for
	for i, c := range cs {
		c, err := c.Check(facts)
		if err != nil {
			proofs[i].Err = err
			continue
		}
		proofs[i].TTL = c.TTL
		good = append(good, i)
		names = append(names, c.Name)
		args = append(args, packProof(c, s.spansOf(c)))
	}
	args[0] = strconv.Itoa(len(good))
	if len(good) == 0 {
		return proofs, s.enter(ctx)
	}
	msgs, err := s.evalAll(ctx, renewScript, "", len(good), s.on(nil, names...), s.withAll(names, args))
	if err != nil {
		// A rejection of the whole call is not certain of any claim: whoever
		// was granted it before still holds it.
		err = doubt(err)
		for _, i := range good {
			proofs[i] = driver.Proof{Err: err}
		}
		return proofs, err
	}
	for at, i := range good {
		proofs[i] = prove(cs[i], proofs[i].TTL, read(cs[i].Name, msgs[at]))
	}
	return proofs, nil
}

// prove makes a proof of the answer about c.
func prove(c driver.Claim, ttl time.Duration, a answer) driver.Proof {
	if errors.Is(a.err, fs.ErrPermission) {
		a.err = doubt(a.err) // whoever was granted it before still holds it
	}
	if a.err != nil {
		return driver.Proof{Err: a.err}
	}
	p := driver.Proof{TTL: ttl}
	if c.Token == 0 {
		a.grant.TTL = ttl
		p.Grant = &a.grant
	}
	return p
}

// doubt makes an unknown error of err.
func doubt(err error) error {
	if driver.Certain(err) {
		return fmt.Errorf("redis: renewal failed: %v", err)
	}
	return err
}
