package cli

import (
	"fmt"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// A factsReport is what a store promises, as JSON.
type factsReport struct {
	Driver   string   `json:"driver"`
	Survival string   `json:"survival"`
	Modes    []string `json:"modes"`
	Fencing  string   `json:"fencing"`
	Ordered  bool     `json:"ordered"`
	HandOver int64    `json:"hand_over_ms"`
	Slack    int64    `json:"slack_ms"`
	MinTTL   int64    `json:"min_ttl_ms"`
	MaxTTL   int64    `json:"max_ttl_ms"`
	Step     int64    `json:"step_ms"`
	MaxBatch int      `json:"max_batch"`
	Waives   []waiver `json:"waives"`

	facts driver.Facts
}

type waiver struct {
	Law int    `json:"law"`
	Why string `json:"why"`
}

func newFactsReport(f driver.Facts) *factsReport {
	r := &factsReport{
		Driver: f.Driver, Survival: f.Survival.String(), Modes: []string{}, Fencing: f.Fencing.String(), Ordered: f.Ordered,
		HandOver: f.HandOver.Milliseconds(), Slack: f.Slack.Milliseconds(), MinTTL: f.MinTTL.Milliseconds(),
		MaxTTL: f.MaxTTL.Milliseconds(), Step: f.Step.Milliseconds(), MaxBatch: f.MaxBatch, Waives: []waiver{}, facts: f,
	}
	for _, m := range []driver.Mode{driver.Exclusive, driver.Shared, driver.Counted} {
		if f.Modes&m != 0 {
			r.Modes = append(r.Modes, m.String())
		}
	}
	for _, w := range f.Waives {
		r.Waives = append(r.Waives, waiver(w))
	}
	return r
}

// String is the guarantee for people.
func (r *factsReport) String() string {
	f := r.facts
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", what, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "What the store %s promises:\n", f.Driver)
	line("modes", "%s", f.Modes)
	line("fences", "%s", map[driver.Fencing]string{
		driver.NoFencing:      "none: nothing to fence a resource with",
		driver.WhileUp:        "they grow as long as the store is up; a restart may begin anew",
		driver.AcrossRestart:  "they grow across restarts that keep the data",
		driver.AcrossFailover: "they grow across restarts, and the loss of any minority of servers",
	}[f.Fencing])
	if f.Ordered {
		line("line", "first come, first served; who was handed a key has %s to take it", short(f.HandOver))
	} else {
		line("line", "none: whoever asks while a key is free gets it")
	}
	late := "at its end"
	if f.Slack > 0 {
		late = "within " + short(f.Slack) + " after its end"
	}
	line("TTL", "%s to %s, in steps of %s; a dead holder's key is free %s at the latest", short(f.MinTTL), short(f.MaxTTL), short(f.Step), late)
	if len(f.Waives) == 0 {
		line("laws", "all are kept (docs/laws.md)")
	}
	for _, w := range f.Waives {
		line("not kept", "law %d: %s", w.Law, w.Why)
	}
	return b.String()
}
