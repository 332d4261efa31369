package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/driver"
)

func newFence() *cobra.Command {
	o := listing{past: true}
	cmd := &cobra.Command{
		Use:   "fence check KEY N",
		Short: "Check that N is the newest fence of KEY",
		Long: `Check that N ($DIBS_FENCE of a dibs run) is the newest fence of KEY, as far as the
store knows. Exit codes:

  0   it is: KEY is held under N, or nobody holds it and the journal's last grant
      of KEY is N
  76  it is not: KEY is held under another, or was granted under a newer one
  69  it can't be told: nobody holds KEY, and the journal does not have the grant
      of N (it is off or was cut, or N is another store's); or the store is down

The answer is true for the moment of the check. It can't replace a resource that
compares fences itself with every write: a process may sleep between the two.

With --json it prints an object with: key, fence, verdict (newest, superseded or
unknown), newest (the newest known, or absent), checked (held or journal: what
the verdict comes from; absent: neither has anything on KEY), claim (who holds it
under the newest), why.`,
		Example: `  dibs fence check nightly "$DIBS_FENCE" && mv report.new report`,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			const usage = "usage: dibs fence check KEY N"
			switch {
			case len(args) == 0 || args[0] != "check":
				return usagef("fence can check; %s", usage)
			case len(args) != 3:
				return usagef("want a key and a number, and not %d arguments; %s", len(args)-1, usage)
			}
			if err := checkKey(args[1]); err != nil {
				return err
			}
			var n token
			if err := n.Set(args[2]); err != nil {
				return usagef("the fence %s: %v (0 is no fence: counted claims have none)", quote(args[2]), err)
			}
			return o.fenceCheck(cmd, args[1], n.value)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			const plain = cobra.ShellCompDirectiveNoFileComp
			switch len(args) {
			case 0:
				return []string{"check"}, plain
			case 1:
				return heldKeys(cmd, begun), plain
			}
			return nil, plain
		},
	}
	o.flags(cmd)
	return cmd
}

// A fenceReport is the JSON of fence check.
type fenceReport struct {
	Key     string       `json:"key"`
	Fence   string       `json:"fence"`
	Verdict string       `json:"verdict"`
	Newest  string       `json:"newest,omitempty"`
	Checked string       `json:"checked,omitempty"`
	Claim   *claimStatus `json:"claim,omitempty"`
	Why     string       `json:"why"`
}

// The verdicts on a fence.
const (
	newest     = "newest"
	superseded = "superseded"
	unknown    = "unknown"
)

func (o *listing) fenceCheck(cmd *cobra.Command, key string, n uint64) error {
	ctx, cancel := asking()
	defer cancel()
	q, err := o.open(ctx, cmd)
	if err != nil {
		return err
	}
	defer q.close()
	r, err := q.fence(ctx, key, n)
	if err != nil {
		return err
	}
	if o.json {
		if err := printJSON(cmd.OutOrStdout(), r); err != nil {
			return err
		}
	} else if r.Verdict == newest {
		fmt.Fprintln(cmd.OutOrStdout(), r.Why)
	} else {
		say(cmd.ErrOrStderr(), "%s", r.Why)
	}
	switch r.Verdict {
	case newest:
		return nil
	case superseded:
		return &failure{code: exitChanged}
	}
	return &failure{code: exitStoreDown}
}

// fence judges n by who holds the key, and if nobody does, by the journal.
func (q *question) fence(ctx context.Context, key string, n uint64) (*fenceReport, error) {
	k, err := q.key(ctx, key)
	if err != nil {
		return nil, err
	}
	r := &fenceReport{Key: key, Fence: strconv.FormatUint(n, 10), Verdict: unknown}
	if len(k.Holders) > 0 {
		r.held(k, n)
		return r, nil
	}
	last, err := q.lastFence(ctx, key)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		r.Why = fmt.Sprintf("can't tell whether %d is the newest fence of %s: nobody holds it, and the store keeps no journal", n, quote(key))
		return r, nil
	case err != nil:
		return nil, q.place.cannot("read the journal about", key, err)
	}
	r.journal(last, n)
	return r, nil
}

// held judges n by the claims on k. The newest claim decides: its fence is the
// newest, unless it has none.
func (r *fenceReport) held(k keyStatus, n uint64) {
	c := k.Holders[len(k.Holders)-1] // claims are listed by token
	r.Checked, r.Claim, r.Newest = "held", &c, c.Fence
	by := fmt.Sprintf("%s by %s", stateOf(c.holder.State), printable(c.Note))
	switch {
	case c.Fence == r.Fence:
		r.Verdict = newest
		r.Why = fmt.Sprintf("%d is the newest fence of %s: %s", n, quote(k.Key), by)
	case c.Fence == "":
		r.Verdict = superseded
		r.Why = fmt.Sprintf("%s has no fence now: it is %s, and counted claims have none", quote(k.Key), by)
	case c.holder.Fence > n:
		r.Verdict = superseded
		r.Why = fmt.Sprintf("%d is not the newest fence of %s: it is %s, with fence %s", n, quote(k.Key), by, c.Fence)
	default:
		r.Verdict = superseded
		r.Why = fmt.Sprintf("%d is no fence of %s that is known: it is %s, with the smaller fence %s", n, quote(k.Key), by, c.Fence)
	}
}

// lastFence is the largest fence of key's grants in the journal; 0: none.
func (q *question) lastFence(ctx context.Context, key string) (last uint64, err error) {
	j, ok := q.store.(driver.Journal)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	for e, err := range j.Events(ctx, key, 0) {
		if err != nil {
			return 0, err
		}
		if e.Name == key {
			last = max(last, e.Fence)
		}
	}
	return last, nil
}

// journal judges n by the last fence in the journal. Nothing but its beginning is
// ever cut: with the grant of n in it, every later one is in it too, unless its
// client wrote no journal.
func (r *fenceReport) journal(last, n uint64) {
	if last > 0 {
		r.Checked, r.Newest = "journal", strconv.FormatUint(last, 10)
	}
	key := quote(r.Key)
	switch {
	case last == n:
		r.Verdict = newest
		r.Why = fmt.Sprintf("%d is the newest fence of %s that the journal knows; nobody holds it now, so another can have it at any moment", n, key)
	case last > n:
		r.Verdict = superseded
		r.Why = fmt.Sprintf("%d is not the newest fence of %s: the journal has %d; nobody holds it now", n, key, last)
	case last == 0:
		r.Why = fmt.Sprintf("can't tell whether %d is the newest fence of %s: nobody holds it, and the journal has no grant of it", n, key)
	default:
		r.Why = fmt.Sprintf("can't tell whether %d is the newest fence of %s: nobody holds it, and the newest that the journal has is the smaller %d; %d was granted without a journal, or by another store", n, key, last, n)
	}
}
