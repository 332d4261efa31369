package redislock

import (
	"context"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/dibslock/dibs/driver"
)

// Release gives back c, or its place in line.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	if err := driver.CheckName(c.Name); err != nil {
		return err
	}
	if c.ID == "" {
		return driver.Rejectedf(c.Name, "the claim has no ID")
	}
	spans := s.spansOf(c)
	grace := spans.grace
	if c.Keep > 0 {
		grace = ""
	}
	e := s.newErrand(c.Name)
	e.about = [3]string{e.add(e.text.short(c, spans)), grace, e.add(e.text.sure(c))}
	m, err := s.backs.call(ctx, e)
	if err != nil {
		return err
	}
	return read(c.Name, m).err
}

// Revoke takes away the claim with r.Token. A claim that has ended already, and
// is only kept or draining, has nobody left to tell: without r.Now it stays as it
// is.
func (s *Store) Revoke(ctx context.Context, r driver.Revocation) error {
	if err := driver.CheckName(r.Name); err != nil {
		return err
	}
	if len(r.Reason) > driver.MaxNote || !utf8.ValidString(r.Reason) {
		return driver.Rejectedf(r.Name, "the reason must be valid UTF-8 of at most %d bytes", driver.MaxNote)
	}
	now := "0"
	if r.Now {
		now = "1"
	}
	m, err := s.eval(ctx, revokeScript, r.Name, s.on(make([]string, 0, 3), r.Name), s.with(r.Name, digits(r.Token), now, r.Reason))
	if err != nil {
		return err
	}
	return read(r.Name, m).err
}

// sure appends until when, in milliseconds of the server's clock, c lives if it was
// granted when its token says.
func (p packer) sure(c driver.Claim) packer {
	return strconv.AppendUint(p, c.Token/1000+uint64(c.TTL/time.Millisecond), 10)
}
