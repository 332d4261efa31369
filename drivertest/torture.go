package drivertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest/judge"
)

// TortureOptions are what a torture is made of. The zero value of a field is
// the default.
type TortureOptions struct {
	Seed  uint64        // of every decision; default 1
	For   time.Duration // how long; in a bubble of the bubble's own time; default 5s, in a bubble 5m
	Procs int           // how many clients at once; default 8
	Names int           // how many names they fight for; default 3
	Lives time.Duration // the TTL of most claims; default 1s, or the store's shortest if that is longer
	Calm  bool          // no faults: a control run
	Kills bool          // a client is killed in every spell of faults, and not only in some
	// Unhurried: it is judged who is let in and what is left, and not how soon a
	// waiter is: in real time a busy machine is late.
	Unhurried bool
}

// A tally counts what happened.
type tally struct {
	mu     sync.Mutex // guards counts
	counts map[string]int
}

func (c *tally) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[string]int)
	}
	c.counts[what] += n
}

func (c *tally) get(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[what]
}

// String lists the counts, sorted by name.
func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(c.counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, c.counts[k]))
	}
	return strings.Join(parts, ", ")
}

// Torture lets seeded clients fight for a few names, through package dibs and
// through the store's own methods, under seeded faults of their links and
// deaths, and then judges the history (see package judge). In a bubble the same
// seed makes the same decisions.
func Torture(t *testing.T, h Harness, o TortureOptions) {
	t.Helper()
	torture(t, h, o.defaults(h.Bubble), func(runs uint64) bool { return runs < 1 })
}

// torture runs one torture after the other, each with a seed that is one more
// than that of the one before, while more says so and none has failed.
func torture(t *testing.T, h Harness, o TortureOptions, more func(runs uint64) bool) {
	t.Helper()
	var total, faults tally
	runs := uint64(0)
	defer func() { // inside ends the test if it fails
		t.Logf("torture of %s: seeds %d to %d, %v each: %v; faults: %v", h.Name, o.Seed, o.Seed+runs-1, o.For, &total, &faults)
	}()
	for more(runs) && !t.Failed() {
		this := o
		this.Seed += runs
		runs++
		inside(t, h, func(t *testing.T, s *Stage) { tortureOnce(t, s, this, &total, &faults) })
	}
}

// TortureByEnv runs Torture as the environment says: with DIBS_TORTURE_SEED, for
// the real time of DIBS_TORTURE_FOR, and skips the test if that is not set. In a
// bubble, where time is free, it is a torture after the other until that time is
// over; the seed of each is one more than that of the one before.
func TortureByEnv(t *testing.T, h Harness) {
	t.Helper()
	text := os.Getenv("DIBS_TORTURE_FOR")
	if text == "" {
		t.Skip("DIBS_TORTURE_FOR is not set")
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("DIBS_TORTURE_FOR: %v", err)
	}
	seed, err := strconv.ParseUint(cmpOr(os.Getenv("DIBS_TORTURE_SEED"), "1"), 10, 64)
	if err != nil {
		t.Fatalf("DIBS_TORTURE_SEED: %v", err)
	}
	if !h.Bubble {
		Torture(t, h, TortureOptions{Seed: seed, For: long})
		return
	}
	start := time.Now()
	torture(t, h, TortureOptions{Seed: seed}.defaults(true), func(uint64) bool { return time.Since(start) < long })
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (o TortureOptions) defaults(bubble bool) TortureOptions {
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.For == 0 {
		o.For = 5 * time.Second
		if bubble {
			o.For = 5 * time.Minute
		}
	}
	if o.Procs == 0 {
		o.Procs = 8
	}
	if o.Names == 0 {
		o.Names = 3
	}
	if o.Lives == 0 {
		o.Lives = time.Second
	}
	return o
}

// An arena is one torture under way.
type arena struct {
	*Stage
	TortureOptions
	t       *testing.T
	history *judge.History
	tally   *tally
	ttl     time.Duration // of most claims; see longTTL
	names   []string
	records bool            // the store keeps records
	end     context.Context // ends when the fight is over
	wg      sync.WaitGroup  // the clients
}

// random returns the source of the decisions of one of a kind.
func (a *arena) random(kind, number uint64) *rand.Rand {
	return rand.New(rand.NewPCG(a.Seed, kind<<32|number))
}

// longTTL is that of a few claims, which are renewed at another pace.
func (a *arena) longTTL() time.Duration { return a.TTL(5 * a.ttl / 2) }

// patience is that of every place in line.
func (a *arena) patience() time.Duration { return min(a.ttl, 2*time.Second) }

// rules are what the store is judged by. Where nobody is dead any more and time
// is exact, a release reaches the next one at once; elsewhere a hand-over may
// lapse, and a poll comes after a second.
func (a *arena) rules() judge.Rules {
	r := judge.Rules{
		Tokens: a.Facts.Fencing != driver.NoFencing,
		Settle: 2*a.longTTL() + a.patience() + a.Facts.HandOver + a.Grace(),
		Bound:  a.Facts.HandOver + 2*time.Second + a.Grace(),
	}
	switch {
	case a.Unhurried:
		r.Bound = 0
	case a.Bubble && a.Facts.Ordered:
		r.Bound = a.ttl/20 + a.Grace()
	}
	return r
}

func tortureOnce(t *testing.T, s *Stage, o TortureOptions, total, faults *tally) {
	a := &arena{Stage: s, TortureOptions: o, t: t, history: judge.NewHistory(), tally: total}
	a.ttl = s.TTL(o.Lives)
	for i := range o.Names {
		a.names = append(a.names, fmt.Sprintf("name/%d", i))
	}
	_, a.records = records(t, s.Open(t))
	var over context.CancelFunc
	a.end, over = context.WithCancel(t.Context())
	defer over()

	n := newNemesis(a, faults)
	for i := range o.Procs {
		n.spawn(i)
	}
	n.rage()
	over()
	a.wg.Wait()
	n.rest()
	a.leftovers()

	events := a.history.Events()
	bad := judge.Judge(events, a.rules())
	total.add("violations", len(bad))
	for i, v := range bad {
		if i == 10 {
			t.Errorf("and %d more", len(bad)-i)
			break
		}
		t.Errorf("%v", v)
	}
	if bad != nil {
		t.Errorf("replay: DIBS_TORTURE_SEED=%d; history: %s", o.Seed, write(t, a.history))
	}
	if total.get("granted") == 0 {
		t.Error("nobody was granted anything")
	}
	if !o.Calm && n.injected() == 0 {
		t.Error("no fault was injected")
	}
}

// write writes the history to a file that outlives the test, and returns its
// name.
func write(t testing.TB, h *judge.History) string {
	f, err := os.CreateTemp("", "dibs-torture-*.log")
	if err != nil {
		t.Error(err)
		return ""
	}
	if err := errors.Join(h.Write(f), f.Close()); err != nil {
		t.Error(err)
	}
	return f.Name()
}

// leftovers waits until everything must have ended, and looks for what has not.
func (a *arena) leftovers() {
	a.t.Helper()
	time.Sleep(a.rules().Settle)
	observer := a.Open(a.t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second+a.Grace())
	defer cancel()
	if l, ok := observer.(driver.Lister); ok {
		for h, err := range l.List(ctx, "") {
			if err != nil {
				a.t.Errorf("list: %v", err)
				break
			}
			a.history.Add(judge.Event{Kind: judge.Left, Key: h.Name, What: fmt.Sprintf("%+v", h)})
		}
	}
	for _, name := range a.names {
		switch err := a.certain(observer, Mutex(name, a.ttl)); {
		case errors.Is(err, driver.ErrHeld):
			a.history.Add(judge.Event{Kind: judge.Left, Key: name, What: err.Error()})
		case err != nil:
			a.t.Errorf("is anything left on %q: %v", name, err)
		}
	}
}

// certain asks for c until the answer is clear, for a minute: a busy server that
// gives none has nothing left over by that.
func (a *arena) certain(s driver.Store, c driver.Claim) (err error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(poll) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second+a.Grace())
		_, err = s.Acquire(ctx, c)
		cancel()
		if err == nil || driver.Certain(err) || time.Now().After(end) {
			return err
		}
	}
}

// settings are those of every client of package dibs.
func (a *arena) settings() dibs.Settings {
	return dibs.Settings{TTL: a.ttl, Patience: a.patience()}
}
