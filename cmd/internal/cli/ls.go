package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

func newLs() *cobra.Command {
	var o listing
	cmd := &cobra.Command{
		Use:   "ls [GLOB]",
		Short: "List the keys that are held, and how many wait for them",
		Long: `List who holds what, a line for each claim, ordered by key. Nothing is printed if
nothing is held.

GLOB is matched with whole keys: * stands for any characters (also for /), ? for
any one, [a-z] for one of a class, \ takes the next character as it is. Put it in
quotes.

With --json there is a line for each key, an object with: key, state, holders,
waiters (in the order of the line); of each state, mode, units, capacity, fence,
token (strings), age_ms, expires_in_ms, ttl_ms, place (of a waiter), note,
foreign (of a program that is not dibs).`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern := ""
			switch {
			case len(args) > 1:
				return usagef("one pattern, and not %d: a shell expands a * that is not in quotes", len(args))
			case len(args) == 1:
				pattern = args[0]
			}
			g, err := newGlob(pattern)
			if err != nil {
				return err
			}
			all, unread := o.read(cmd, g.prefix, g.match.MatchString)
			if len(all) == 0 && unread == nil && o.verbose {
				say(cmd.ErrOrStderr(), "nothing is held")
			}
			if !o.json {
				return cmp.Or(table(cmd.OutOrStdout(), all), unread)
			}
			for _, k := range all {
				if err := printJSON(cmd.OutOrStdout(), k); err != nil {
					return err
				}
			}
			return unread
		},
	}
	o.flags(cmd)
	return cmd
}

// A listing has the flags of ls and show.
type listing struct {
	store   text
	json    bool
	verbose bool
	past    bool // what is asked for may be in the journal alone
	lasts   bool // it is asked again and again
}

func (o *listing) flags(cmd *cobra.Command) {
	o.store.kind = "URL"
	f := cmd.Flags()
	f.VarP(&o.store, "store", "s", "where the locks are")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say which store is used")
}

func (o *listing) read(cmd *cobra.Command, prefix string, wants func(string) bool) ([]keyStatus, error) {
	ctx, cancel := asking()
	defer cancel()
	q, err := o.open(ctx, cmd)
	if err != nil {
		return nil, err
	}
	defer q.close()
	return listed(ctx, q.place, q.client, prefix, wants)
}

// noteWidth is how much of a note a table shows; show and --json have all of it.
const noteWidth = 60

func table(w io.Writer, all []keyStatus) error {
	if len(all) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tHOLDER\tSTATE\tMODE\tAGE\tEXPIRES\tFENCE\tWAITING")
	for _, k := range all {
		claims := k.Holders
		if len(claims) == 0 {
			claims = k.Waiters[:1] // about to be handed over
		}
		for _, c := range claims {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", cell(k.Key), trim(orDash(printable(c.Note)), noteWidth),
				c.State, modeOf(c), ageOf(c, 0), orDash(leftOf(&c.holder)), orDash(c.Fence), len(k.Waiters))
		}
	}
	return t.Flush()
}

// cell shows a key in a table, in quotes if it would not be one word.
func cell(key string) string {
	if strings.ContainsAny(key, " \"'\\") || printable(key) != key {
		return quote(key)
	}
	return key
}

// ageOf is how old a claim is, in whole units, if that is known.
func ageOf(c claimStatus, unit time.Duration) string {
	if c.Foreign && c.holder.Age == 0 {
		return "-"
	}
	return short(c.holder.Age.Truncate(unit))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// modeOf is exclusive, shared, or counted with its numbers.
func modeOf(c claimStatus) string {
	if c.Of > 0 {
		return fmt.Sprintf("%d of %d", c.Units, c.Of)
	}
	return c.Mode
}
