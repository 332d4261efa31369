package drivertest

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

const (
	stormRounds   = 2           // how often each thing is taken over in a short storm
	stormPause    = time.Second // how long the others wait at most before the kill
	stormPatience = time.Minute // how much later than by the TTL is taken for never
)

// Storm has processes hold the units of a semaphore, a reader's lock and the
// leadership of the storage at rawURL, and kills one after the other, as kill -9
// does, while others wait: each time what the dead had is granted to those, and
// never while the holders live. In the end nothing is left over. It is a long
// storm if DIBS_TORTURE_FOR is set, by the seed of DIBS_TORTURE_SEED, and logs how
// long after the dead holder's TTL the next one held at most: a negative time if
// that was before its end. What the store does not grant is left out.
//
// The package's TestMain must call StormMain. ttl is how long a dead holder is in
// the way.
func Storm(t *testing.T, rawURL string, ttl time.Duration) {
	t.Helper()
	store, err := driver.Open(t.Context(), rawURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	seed, err := strconv.ParseUint(cmpOr(os.Getenv("DIBS_TORTURE_SEED"), "1"), 10, 64)
	if err != nil {
		t.Fatalf("DIBS_TORTURE_SEED: %v", err)
	}
	more := func(rounds int) bool { return rounds < stormRounds }
	if text := os.Getenv("DIBS_TORTURE_FOR"); text != "" {
		long, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("DIBS_TORTURE_FOR: %v", err)
		}
		begun := time.Now()
		more = func(int) bool { return time.Since(begun) < long }
	}
	var wg sync.WaitGroup
	for i, kind := range []string{"units", "reader", "leadership"} {
		needs := map[string]driver.Mode{"units": driver.Counted, "reader": driver.Shared}[kind]
		if store.Facts().Modes&needs != needs {
			continue
		}
		s := &storm{
			url: rawURL, kind: kind, name: "storm/" + kind, ttl: ttl, words: make(chan word, 64),
			rng: rand.New(rand.NewPCG(seed, uint64(i))),
		}
		wg.Go(func() { // ends with its rounds
			t.Run(kind, func(t *testing.T) { s.run(t, more) })
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	client, err := dibs.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"units", "reader", "leadership"} {
		ctx, cancel := context.WithTimeout(t.Context(), ttl+stormPatience)
		lease, err := client.Writer("storm/" + kind).Lock(ctx)
		cancel()
		if err != nil {
			t.Fatalf("when all are dead: %v", err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if l, ok := store.(driver.Lister); ok {
		for h, err := range l.List(t.Context(), "") {
			t.Errorf("left over: %+v, %v", h, err)
		}
	}
}

// A storm is that of one kind of thing.
type storm struct {
	url, kind, name string
	ttl             time.Duration
	rng             *rand.Rand
	words           chan word
	living          []*contender
	kills, lost     int
	took            []time.Duration // from the last kill to the last grant
}

// run has one generation of contenders wait for the one before it, which is then
// killed, again and again.
func (s *storm) run(t *testing.T, more func(rounds int) bool) {
	for round := 0; round == 0 || more(round-1); round++ {
		old := s.holders()
		s.spawn(t, round)
		s.listen(t, "all wait", func() bool { return !slices.ContainsFunc(s.living, func(c *contender) bool { return !c.waits }) })
		if round > 0 {
			s.listenFor(t, s.upTo(stormPause))
		}
		lost, killed := s.lost, time.Now()
		for i, k := range s.rng.Perm(len(old)) {
			if i > 0 {
				s.listenFor(t, s.upTo(stormPause/4))
			}
			killed = time.Now()
			s.kill(old[k])
		}
		s.listen(t, "what the dead had is held again", s.taken)
		if round > 0 && s.lost == lost {
			s.took = append(s.took, time.Since(killed))
		}
	}
	slices.Sort(s.took)
	if n := len(s.took); n > 0 {
		most := s.took[n-1]
		t.Logf("%s: %d kills, %d losses; held again %v after the kill (median), %v at most: %v beyond the TTL of %v", s.kind, s.kills, s.lost, s.took[(n-1)/2], most, most-s.ttl, s.ttl)
	}
}

// spawn starts the next generation.
func (s *storm) spawn(t *testing.T, round int) {
	add := func(kind string, units int) {
		s.living = append(s.living, start(t, s.url, kind, s.name, units, s.ttl, s.words))
	}
	switch {
	case s.kind == "units":
		one := 1 + s.rng.IntN(stormFull-1)
		add(s.kind, one)
		add(s.kind, stormFull-one)
	case s.kind == "reader" && round%2 == 0:
		add(s.kind, 1)
		add(s.kind, 1)
	case s.kind == "reader":
		add("writer", stormFull)
	default:
		for len(s.living) < 3 { // one leads, two wait
			add(s.kind, stormFull)
		}
	}
}

// taken tells whether all that there is to hold is held.
func (s *storm) taken() bool {
	held := s.holders()
	return len(held) == len(s.living) || s.kind == "leadership" && len(held) > 0
}

func (s *storm) holders() (held []*contender) {
	for _, c := range s.living {
		if c.holds {
			held = append(held, c)
		}
	}
	return held
}

func (s *storm) kill(c *contender) {
	s.kills++
	s.living = slices.DeleteFunc(s.living, func(l *contender) bool { return l == c })
	_ = c.cmd.Process.Kill() // it can't be gone: nobody waits for it before
}

func (s *storm) upTo(d time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(d))) }

// listen listens until ok.
func (s *storm) listen(t *testing.T, what string, ok func() bool) {
	t.Helper()
	never := time.After(s.ttl + stormPatience)
	for !ok() {
		select {
		case w := <-s.words:
			s.heard(t, w)
		case <-never:
			t.Fatalf("after %v: not yet: %s", s.ttl+stormPatience, what)
		}
	}
}

// listenFor listens for d.
func (s *storm) listenFor(t *testing.T, d time.Duration) {
	t.Helper()
	over := time.After(d)
	for {
		select {
		case w := <-s.words:
			s.heard(t, w)
		case <-over:
			return
		}
	}
}

// heard takes in what a contender says, and fails if more is held than there is.
// Only who has lost what it held, which a busy machine makes possible, may be heard
// later than the one who got it.
func (s *storm) heard(t *testing.T, w word) {
	t.Helper()
	if !slices.Contains(s.living, w.from) {
		return // the last words of a dead one
	}
	switch w.text {
	case "waits":
		w.from.waits = true
	case "lost":
		w.from.holds = false
		s.lost++
	case "held":
		w.from.holds = true
		s.listen(t, "no more is held than there is", func() bool {
			sum := 0
			for _, c := range s.holders() {
				sum += c.units
			}
			return sum <= stormFull
		})
	default:
		t.Fatalf("a process said %q", w.text)
	}
}
