package cli

import (
	"context"
	"strings"
	"time"

	"github.com/dibslock/dibs/driver"
)

// targets are the claims to take away, by key.
func (u *unlocker) targets(ctx context.Context, q *question) ([]unlocked, error) {
	if !u.many {
		k, err := q.key(ctx, u.key)
		if err != nil {
			return nil, err
		}
		t, err := u.target(k)
		return []unlocked{t}, err
	}
	all, err := listed(ctx, q.place, q.client, u.glob.prefix, u.glob.match.MatchString)
	if err != nil {
		return nil, err
	}
	var targets []unlocked
	for _, k := range all {
		for _, c := range k.Holders {
			if u.now || !over(c) {
				targets = append(targets, unlocked{Key: k.Key, Token: c.Token, Now: u.now, Claim: c})
			}
		}
	}
	if len(targets) == 0 {
		say(u.err, "nothing that is held matches; nothing was done")
	}
	return targets, nil
}

// target is the claim on k that has the token.
func (u *unlocker) target(k keyStatus) (unlocked, error) {
	if !u.token.given {
		hint := ""
		if len(k.Holders) > 0 && k.Holders[0].Token != "" {
			hint = "\nfor example: dibs force-unlock " + shellWord(k.Key) + " --token " + k.Holders[0].Token
		}
		return unlocked{}, usagef("--token is missing: it says which claim, so that no other is hit; nothing was done\n%s%s", present(k), hint)
	}
	for _, c := range k.Holders {
		if c.holder.Token != u.token.value {
			continue
		}
		if !u.now && over(c) {
			return unlocked{}, usagef("nobody is left to take it from; --now frees it sooner; nothing was done\n%s", present(k))
		}
		return unlocked{Key: k.Key, Token: c.Token, Now: u.now, Claim: c}, nil
	}
	return unlocked{}, changed(k, u.token.value)
}

// over tells that the holder is gone, and only a minimum time or a delay runs on.
func over(c claimStatus) bool {
	return c.holder.State == driver.Kept || c.holder.State == driver.Draining
}

// present describes k for a message.
func present(k keyStatus) string {
	var b strings.Builder
	_ = describe(&b, time.Now(), k) // a Builder takes all
	return strings.TrimSpace(b.String())
}

// changed says that nothing on k has the token.
func changed(k keyStatus, token uint64) error {
	return failf(exitChanged, "no claim on %s has the token %d; nothing was done\nnow: %s", quote(k.Key), token, present(k))
}
