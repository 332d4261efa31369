package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// report is the whole of RESULTS.md.
func report(all []outcome, opts options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results\n\nMade by `make bench`; do not edit. %s, %s/%s, %d cores, %s.\n\n", time.Now().UTC().Format("2006-01-02"),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	fmt.Fprintf(&b, "Each figure is the median of the rounds, with the quartiles behind it; a race has %d rounds of %v, those for one name four times as long. ", opts.rounds, opts.each)
	b.WriteString("Floor, dibs and peers take turns in each round, in processes of their own, and who begins changes. " +
		"Columns with an x are multiples of the floor's in the same round, which depend on the machine far less than the others; those are this machine's, or counts.\n\n" +
		"*time* is that of a grant, from one to the next; *hand-over* the same, but only grants to another than the one before count: " +
		"who gives back and takes again before anybody who waits can, has not handed over. " +
		"*client CPU* and *server CPU* are the processors' time for a grant, *commands* what clients sent to the server for it, polls and all, " +
		"*with those in scripts* what the server ran, *allocations* those of the clients. *fairness* is Jain's index over all that compete: 1 if all were granted the same, 1/n if one had all.\n")
	last := ""
	for _, o := range all {
		if o.store.name != last {
			last = o.store.name
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", o.store.name, o.store.about)
		}
		table(&b, o)
	}
	fmt.Fprintf(&b, "%s%s.\n", libraryLine, strings.Join(libraries(), ", "))
	return b.String()
}

// table writes what came of one contest: a row for each player.
func table(b *strings.Builder, o outcome) {
	fmt.Fprintf(b, "\n### %s: %s\n\n", o.store.name, o.name)
	if o.asked != "" {
		fmt.Fprintf(b, "Asked for: %s.\n\n", o.asked)
	}
	var figures []figure
	b.WriteString("| |")
	for _, f := range o.kind.figures() {
		if f.of(o, 0) == nil {
			continue
		}
		figures = append(figures, f)
		fmt.Fprintf(b, " %s |", f.title())
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(figures)) + "\n")
	for i, p := range o.players {
		fmt.Fprintf(b, "| %s |", p.name)
		for _, f := range figures {
			fmt.Fprintf(b, " %s |", f.cell(o, i))
		}
		b.WriteString("\n")
	}
}

func (f figure) title() string {
	if f.over {
		return f.name + ", x"
	}
	return f.name
}

// cell is the figure of player i, as text.
func (f figure) cell(o outcome, i int) string {
	xs := f.of(o, i)
	switch {
	case xs == nil:
		return "-"
	case f.over && i == 0:
		return "1"
	}
	low, mid, high := spread(xs)
	if f.over {
		return fmt.Sprintf("**%.*f** (%.*f-%.*f)", f.digits, mid, f.digits, low, f.digits, high)
	}
	return fmt.Sprintf("%.*f (%.*f-%.*f)", f.digits, mid, f.digits, low, f.digits, high)
}

// measured are the libraries whose versions matter.
var measured = []string{"modernc.org/sqlite", "github.com/redis/rueidis", "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4", "github.com/bsm/redislock", "github.com/jackc/pgx/v5"}

// libraries tells which versions were measured.
func libraries() (out []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fmt.Fprintln(os.Stderr, "bench: no build info")
		return nil
	}
	for _, m := range info.Deps {
		for _, path := range measured {
			if m.Path == path {
				out = append(out, m.Path+" "+m.Version)
			}
		}
	}
	return out
}
