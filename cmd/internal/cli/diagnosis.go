package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

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
