package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/driver"
)

func newDoctor() *cobra.Command {
	d := &doctor{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the store, and say what it promises",
		Long: `Check which store is used and why, whether it can be reached, locks, and excludes;
how long a round trip takes and which TTL is safe with that; what frees the keys of
a dead holder; the journal and the clocks; and what the store stands on: of a file
its permissions and file system, and default stores of other users of this host,
which do not exclude this one; of a server its version, memory, disk, replicas, the
rights of the user, and what is in between. Last, what the store promises, and which
laws it does not keep.

It locks a key of its own, dibs/doctor/..., for a moment. It exits 0 if the store
is fit for use, also with warnings; else with the code that the other commands
would exit with: 69, 73, 77 or 78.

With --json it prints one object with: store (url, from), checks (check, status: ok,
warning, failed or info, text, hint), facts, round_trip (samples, median_ms,
slowest_ms), suggested_ttl_ms, exit_code.`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	d.store.kind = "URL"
	f := cmd.Flags()
	f.VarP(&d.store, "store", "s", "where the locks are")
	f.BoolVar(&d.json, "json", false, "print JSON")
	return cmd
}

// A doctor is one dibs doctor.
type doctor struct {
	store text
	json  bool
	place place
	found diagnosis
}

func (d *doctor) run(cmd *cobra.Command) error {
	ctx, cancel := asking()
	defer cancel()
	d.examine(ctx)
	if d.json {
		if err := printJSON(cmd.OutOrStdout(), d.found); err != nil {
			return err
		}
	} else if err := d.print(cmd.OutOrStdout()); err != nil {
		return err
	}
	return &failure{code: d.found.ExitCode}
}

// examine goes as far as it can.
func (d *doctor) examine(ctx context.Context) {
	var err error
	if d.place, err = choose(d.store); err != nil {
		d.fail("store", err)
		return
	}
	p := d.place
	d.found.Store = &placeReport{URL: driver.Redact(p.url), From: p.from}
	why := ""
	if p.from == theDefault {
		why = "none of --store, DIBS_STORE_URL and DIBS_STORE_URL_FILE is set"
	}
	d.note(fine, "store", p.String(), why)
	if os.Getenv("DIBS_STORE_URL") != "" && os.Getenv("DIBS_STORE_URL_FILE") != "" && !d.store.given {
		d.note(warning, "store", "DIBS_STORE_URL and DIBS_STORE_URL_FILE are both set; the first is used", "unset one of them")
	}
	store, err := d.open(ctx)
	if err != nil {
		d.fail("open", err)
		d.neighbours()
		return
	}
	defer func() { _ = store.Close() }() // nothing was left in it
	d.found.Facts = newFactsReport(store.Facts())
	switch {
	case store.Facts().Driver == "mem":
		d.fail("locks", failf(exitConfig, "the store is this process's memory: no other process shares it\nchoose one that all processes reach, with --store or DIBS_STORE_URL"))
	case d.looks(ctx, store) && d.answers(ctx, store):
		d.after(ctx, store)
	}
	d.neighbours()
}

// looks asks the store for what it knows of what it stands on, and tells whether
// it gave an answer.
func (d *doctor) looks(ctx context.Context, store driver.Store) bool {
	patient, ok := store.(driver.Diagnoser)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	found, err := patient.Diagnose(ctx)
	for _, f := range found {
		d.note(f.Level.String(), f.Check, f.Text, f.Hint)
		if f.Level == driver.Unfit && d.found.ExitCode == 0 {
			d.found.ExitCode = exitConfig
		}
	}
	if err != nil {
		d.fail("server", d.place.cannot("look at", "", err))
	}
	return err == nil
}

// answers probes a store that may hang.
func (d *doctor) answers(ctx context.Context, store driver.Store) bool {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	return d.probe(ctx, store)
}

// open opens the store without a journal: what the doctor does is no history.
func (d *doctor) open(ctx context.Context) (driver.Store, error) {
	return d.place.openAs(ctx, withJournal(d.place.url, "off"))
}

// after looks at what only some stores have.
func (d *doctor) after(ctx context.Context, store driver.Store) {
	d.deaths(store)
	d.journal(ctx)
	d.clock(ctx, store)
}
