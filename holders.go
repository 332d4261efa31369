package dibs

import (
	"context"
	"iter"

	"github.com/dibslock/dibs/driver"
)

// A Holder is a claim, or a place in line, as an operator sees it.
type Holder = driver.Holder

// A Revocation is an operator's order to take a claim away.
type Revocation = driver.Revocation

// Holders yields who holds and who waits on every name that begins with prefix,
// ordered by name, holders before waiters. Claims that have ended are not
// listed. An error ends it; [errors.ErrUnsupported] if the store can't tell.
func (c *Client) Holders(ctx context.Context, prefix string) iter.Seq2[Holder, error] {
	return func(yield func(Holder, error) bool) {
		lister, ok := c.core.store.(driver.Lister)
		if !ok {
			yield(Holder{}, c.core.error("list", prefix, driver.Unsupportedf("%s can't list holders", c.core.facts.Driver)))
			return
		}
		for h, err := range lister.List(ctx, prefix) {
			if err != nil {
				yield(Holder{}, c.core.error("list", prefix, err))
				return
			}
			if !yield(h, nil) {
				return
			}
		}
	}
}

// Revoke takes a claim away from its holder, by token, so that a successor is
// never hit: ErrNotHeld if no claim on the name has it. The holder is told at
// its next renewal, and the name stays closed until it lets go or its TTL ends;
// with Now the name is free at once, and whoever still works on it is not asked.
func (c *Client) Revoke(ctx context.Context, r Revocation) error {
	revoker, ok := c.core.store.(driver.Revoker)
	if !ok {
		return c.core.error("revoke", r.Name, driver.Unsupportedf("%s can't revoke", c.core.facts.Driver))
	}
	if err := revoker.Revoke(ctx, r); err != nil {
		return c.core.error("revoke", r.Name, err)
	}
	return nil
}
