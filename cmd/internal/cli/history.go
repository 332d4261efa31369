package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/driver"
)

func newHistory() *cobra.Command {
	h := &historian{listing: listing{past: true}, limit: number{least: 1, most: driver.MaxUnits}}
	cmd := &cobra.Command{
		Use:   "history [GLOB]",
		Short: "Show who held what, when, and how it ended",
		Long: `Show who held what, when and how it ended, a line for each hold, the oldest first.
GLOB is as in dibs ls.

It is read from the store's journal. A file keeps the last 20,000 events, of those
clients that write a journal: dibs does unless the store's URL has journal=off, a
program only with journal=on. A death shows when another notices it.

ENDED is held (it still is), released, expired (no renewal came, or it died),
revoked, or unknown (nobody holds it, and the journal does not tell its end).

With --json there is a line for each hold, an object with: key, token, fence
(strings), mode, units, capacity, start, end, held_ms (null if not known), outcome,
handed_over, took_over (the holder before had not let go), revoked (at, now, by,
reason), note.`,
		Example: `  dibs history --since 24h
  dibs history 'backup/*' --limit 10`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := pattern(args)
			if err != nil {
				return err
			}
			return h.run(cmd, g)
		},
	}
	h.flags(cmd)
	f := cmd.Flags()
	f.Var(&h.since, "since", "only what was held within the last DUR")
	f.Var(&h.limit, "limit", "only the newest N")
	return cmd
}

// A historian is one dibs history.
type historian struct {
	listing
	since duration
	limit number
}

func (h *historian) run(cmd *cobra.Command, g *glob) error {
	ctx, cancel := asking()
	defer cancel()
	q, err := h.open(ctx, cmd)
	if err != nil {
		return err
	}
	defer q.close()
	l, err := q.ledger(ctx, g)
	if err != nil {
		return err
	}
	var from time.Time
	if h.since.given {
		from = q.now(ctx).Add(-h.since.Duration)
	}
	holds := h.pick(l.holds, from)
	say(cmd.ErrOrStderr(), "%s", strings.Join(gaps(q.place, l, from), "\n"))
	if h.json {
		for _, one := range holds {
			if err := printJSON(cmd.OutOrStdout(), one); err != nil {
				return err
			}
		}
		return nil
	}
	return holdTable(cmd.OutOrStdout(), holds)
}

// ledger reads the journal about the keys that g matches.
func (q *question) ledger(ctx context.Context, g *glob) (*ledger, error) {
	j, ok := q.store.(driver.Journal)
	if !ok {
		return nil, q.place.cannot(canTellHistory, "", driver.Unsupportedf("%s keeps no journal", q.store.Facts().Driver))
	}
	l := newLedger()
	read := func() error {
		for e, err := range j.Events(ctx, "", l.last) {
			if err != nil {
				return q.place.cannot(canTellHistory, "", err)
			}
			if g.match.MatchString(e.Name) {
				l.add(e)
			} else {
				l.pass(e)
			}
		}
		return nil
	}
	if err := read(); err != nil {
		return nil, err
	}
	for c, err := range q.client.Holders(ctx, g.prefix) {
		if err != nil {
			return nil, q.place.cannot(canList, "", err)
		}
		if c.State != driver.Waiting {
			l.present(c)
		}
	}
	// Whatever ended between the two reads is in the journal by now.
	return l, read()
}

// now is the store's, which the journal's moments come from; this host's if the
// store does not tell.
func (q *question) now(ctx context.Context) time.Time {
	if r, ok := q.store.(driver.Records); ok {
		if _, now, err := r.Get(ctx, "dibs/now"); err == nil {
			return now
		}
	}
	return time.Now()
}

// pick leaves out what ended before from, and all but the newest.
func (h *historian) pick(holds []*hold, from time.Time) []*hold {
	var picked []*hold
	for _, one := range holds {
		last := one.End
		if last == nil {
			last = one.Start // its end is unknown
		}
		if one.Outcome == heldStill || last == nil || !last.Before(from) {
			picked = append(picked, one)
		}
	}
	if n := h.limit.value; n > 0 && len(picked) > n {
		picked = picked[len(picked)-n:]
	}
	return picked
}

// gaps says what the journal can't tell.
func gaps(p place, l *ledger, from time.Time) (notes []string) {
	switch {
	case l.first.Seq == 0:
		notes = append(notes, fmt.Sprintf("the journal of %s is empty: nothing was locked yet, or without a journal", p))
	case l.first.Seq > 1 && from.Before(l.first.At):
		notes = append(notes, fmt.Sprintf("the journal begins at %s: what was before is not kept", moment(l.first.At)))
	}
	if !p.journals() {
		notes = append(notes, fmt.Sprintf("the store's URL has journal=off: what is done through %s is not written down", p))
	}
	return notes
}

func holdTable(w io.Writer, holds []*hold) error {
	if len(holds) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "START\tHELD\tENDED\tFENCE\tKEY\tHOLDER")
	for _, h := range holds {
		start, held := "?", "?"
		if h.Start != nil {
			start = moment(*h.Start)
		}
		if h.Held != nil {
			held = short(time.Duration(*h.Held) * time.Millisecond)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", start, held, h.Outcome, orDash(h.Fence), cell(h.Key), trim(orDash(printable(h.Note)), noteWidth))
		if h.TookOver {
			fmt.Fprintf(t, "\t\t\t\t\t  took over from a holder that had not let go\n")
		}
		if h.Revoked != nil {
			fmt.Fprintf(t, "\t\t\t\t\t  %s\n", h.Revoked)
		}
	}
	return t.Flush()
}
