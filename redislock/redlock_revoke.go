package redislock

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/redislock/internal/quorum"
)

var _ driver.Revoker = (*Redlock)(nil)

// Revoke takes away the claim with r.Token, on a majority of the nodes at least: its
// holder's next renewal finds no majority any more. If fewer answer it is unknown
// whether that is so.
func (s *Redlock) Revoke(ctx context.Context, r driver.Revocation) error {
	if err := driver.CheckName(r.Name); err != nil {
		return err
	}
	if len(r.Reason) > driver.MaxNote || !utf8.ValidString(r.Reason) {
		return driver.Rejectedf(r.Name, "the reason must be valid UTF-8 of at most %d bytes", driver.MaxNote)
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	now := "0"
	if r.Now {
		now = "1"
	}
	a := &ballots{Redlock: s, claim: driver.Claim{Name: r.Name}}
	a.clear()
	p := s.ask(s.nodes, revokePatience, nil, takeScript, s.keys.of(r.Name), []string{"1", digits(r.Token), now})
	defer p.end()
	for range s.nodes {
		switch r, err := p.next(ctx); {
		case err == errLate:
			a.mute()
		case err != nil:
			return err
		default:
			a.count(r)
		}
		mine, held := 0, 0
		for _, v := range a.votes {
			switch v.Kind {
			case quorum.Mine:
				mine++
			case quorum.Held:
				held++
			}
		}
		switch q := quorum.Majority(len(a.all)); {
		case mine >= q:
			return nil
		case held > len(a.all)-q && a.sure():
			return a.notHeld()
		}
	}
	return tooFew(a.all)
}

// revokePatience is how long a node may take to answer an operator.
const revokePatience = 2 * time.Second
