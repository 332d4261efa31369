package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

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
a dead holder; the journal, the clocks, the file's permissions and file system; and
whether other users of this host have default stores of their own, which do not
exclude this one. Last, what the store promises, and which laws it does not keep.

It locks a key of its own, dibs/doctor/..., for a moment. It exits 0 if the store
is fit for use, also with warnings; else with the code that the other commands
would exit with: 69, 73, 77 or 78.

With --json it prints one object with: store (url, from), checks (check, status: ok,
warning, failed or info, text, hint), facts, round_trip (samples, median_ms,
slowest_ms), suggested_ttl_ms, exit_code.`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	d.flags(cmd)
	return cmd
}

// A doctor is one dibs doctor.
type doctor struct {
	listing
	place place
	found diagnosis
}

// A diagnosis is the JSON of doctor.
type diagnosis struct {
	Store     *placeReport `json:"store,omitempty"`
	Checks    []finding    `json:"checks"`
	Facts     *factsReport `json:"facts,omitempty"`
	RoundTrip *roundTrip   `json:"round_trip,omitempty"`
	TTL       *int64       `json:"suggested_ttl_ms,omitempty"`
	ExitCode  int          `json:"exit_code"`
}

type placeReport struct {
	URL  string `json:"url"`
	From string `json:"from"`
}

// A finding is what one check found.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
}

// The statuses of a finding.
const (
	fine    = "ok"
	warning = "warning"
	failed  = "failed"
	info    = "info"
)

func (d *doctor) note(status, check, text, hint string) {
	d.found.Checks = append(d.found.Checks, finding{Check: check, Status: status, Text: text, Hint: hint})
}

func (d *doctor) notef(status, check, format string, args ...any) {
	d.note(status, check, fmt.Sprintf(format, args...), "")
}

// fail notes a failure, whose first line says what and whose others say what to do.
func (d *doctor) fail(check string, err error) {
	code, all := verdict(err)
	what, hint, _ := strings.Cut(all, "\n")
	d.note(failed, check, what, hint)
	if d.found.ExitCode == 0 {
		d.found.ExitCode = code
	}
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
	d.found.Store = &placeReport{URL: redact(p.url), From: p.from}
	d.notef(fine, "store", "%s", p)
	if os.Getenv("DIBS_STORE_URL") != "" && os.Getenv("DIBS_STORE_URL_FILE") != "" && !d.store.given {
		d.note(warning, "store", "DIBS_STORE_URL and DIBS_STORE_URL_FILE are both set; the first is used", "unset one of them")
	}
	d.before()
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
	case d.answers(ctx, store):
		d.after(ctx, store)
	}
	d.neighbours()
}

// answers probes a store that may hang.
func (d *doctor) answers(ctx context.Context, store driver.Store) bool {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	return d.probe(ctx, store)
}

// open opens the store without a journal: what the doctor does is no history.
func (d *doctor) open(ctx context.Context) (driver.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	store, err := driver.Open(ctx, unjournaled(d.place.url))
	if err != nil {
		return nil, d.place.cannotOpen(err)
	}
	return store, nil
}

// after looks at what only some stores have.
func (d *doctor) after(ctx context.Context, store driver.Store) {
	d.deaths(store)
	d.journal(ctx, store)
	d.clock(ctx, store)
	d.file()
}

// deaths tells what frees the key of a holder that died.
func (d *doctor) deaths(store driver.Store) {
	life, ok := store.(interface{ LifeFile() (*os.File, error) })
	switch {
	case !ok && store.Facts().Survival == driver.BySession:
		d.notef(fine, "death", "a dead holder's keys are free when its session ends")
	case !ok:
		d.notef(info, "death", "a dead holder's keys are free when its TTL is over")
	default:
		f, err := life.LifeFile()
		switch {
		case err != nil:
			d.fail("death", d.place.cannot("make a life file (whose lock proves that a holder is alive)", "", err))
		case f == nil:
			d.notef(info, "death", "a dead holder's keys are free when its TTL is over: this system can't prove a death")
		default:
			d.notef(fine, "death", "a dead holder's keys are free at once: the kernel lets go of the lock on its life file in %s-life", d.place.file())
		}
	}
}

// journal tells what history can.
func (d *doctor) journal(ctx context.Context, store driver.Store) {
	j, ok := store.(driver.Journal)
	if !ok {
		d.notef(info, "journal", "the store keeps none: dibs history can't tell who held what")
		return
	}
	var n int
	var first driver.Event
	for e, err := range j.Events(ctx, "", 0) {
		if errors.Is(err, errors.ErrUnsupported) {
			d.notef(info, "journal", "%v", err)
			return
		}
		if err != nil {
			d.fail("journal", d.place.cannot("read the journal", "", err))
			return
		}
		if n++; n == 1 {
			first = e
		}
	}
	text := "empty"
	if n > 0 {
		text = fmt.Sprintf("%d events since %s", n, moment(first.At))
	}
	if !d.place.journals() {
		d.note(warning, "journal", "off (journal=off in the store's URL), "+text, "without it, dibs history can't tell who held what through this URL")
		return
	}
	d.notef(fine, "journal", "on, %s", text)
}

// print writes a line for each finding.
func (d *doctor) print(w io.Writer) error {
	mark := map[string]string{fine: "ok", warning: "warning", failed: "FAILED", info: "-"}
	color := map[string]string{fine: "32", warning: "33", failed: "31"}
	paint := painter(w)
	var errs []error
	put := func(format string, args ...any) {
		_, err := fmt.Fprintf(w, format, args...)
		errs = append(errs, err)
	}
	for _, f := range d.found.Checks {
		put("%s %-12s %s\n", paint(color[f.Status], fmt.Sprintf("%-8s", mark[f.Status])), f.Check, printable(f.Text))
		for line := range strings.SplitSeq(f.Hint, "\n") {
			if line != "" {
				put("%22s%s\n", "", printable(line))
			}
		}
	}
	if d.found.Facts != nil {
		put("\n%s", d.found.Facts)
	}
	return errors.Join(errs...)
}

// painter colors text on a terminal, unless NO_COLOR says not to.
func painter(w io.Writer) func(code, text string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !isTerminal(w) {
		return func(_, text string) string { return text }
	}
	return func(code, text string) string {
		if code == "" {
			return text
		}
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
}
