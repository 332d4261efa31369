package judge_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest/judge"
)

const s = time.Second

// try is an attempt of a planted history, in seconds.
type try struct {
	called, returned, stopped int
	units, capacity           int // 0: exclusive
	token, fence              uint64
	until                     int // 0: long after it stopped
	end                       judge.Kind
	waits, refused, failed    bool
	key                       string
}

const shared = driver.Unlimited

func (a try) events(id int) []judge.Event {
	if a.capacity == 0 {
		a.units, a.capacity = 1, 1
	}
	if a.until == 0 {
		a.until = 1_000_000
	}
	if a.end == 0 {
		a.end = judge.Released
	}
	if a.key == "" {
		a.key = "k"
	}
	at := func(k judge.Kind, sec int) judge.Event {
		return judge.Event{Kind: k, Attempt: id, Proc: id, Key: a.key, At: time.Duration(sec) * s}
	}
	call := at(judge.Called, a.called)
	call.Units, call.Capacity, call.Waits = a.units, a.capacity, a.waits
	events := []judge.Event{call}
	switch {
	case a.returned == 0:
		return events
	case a.refused:
		return append(events, at(judge.Refused, a.returned))
	case a.failed:
		return append(events, at(judge.Failed, a.returned))
	}
	grant := at(judge.Granted, a.returned)
	grant.Token, grant.Fence, grant.Until = a.token, a.fence, time.Duration(a.until)*s
	events = append(events, grant)
	switch {
	case a.stopped == 0:
	case a.end == judge.Released:
		events = append(events, at(judge.Letting, a.stopped), at(judge.Released, a.stopped+1))
	default:
		events = append(events, at(a.end, a.stopped))
	}
	return events
}

func history(tries ...try) []judge.Event {
	var all []judge.Event
	for i, a := range tries {
		all = append(all, a.events(i+1)...)
	}
	return all
}

func mark(k judge.Kind, sec int) judge.Event {
	return judge.Event{Kind: k, At: time.Duration(sec) * s, Key: "k"}
}

var rules = judge.Rules{Tokens: true, Settle: 10 * s, Bound: 5 * s}

func TestJudge(t *testing.T) {
	t.Parallel()
	first := try{called: 1, returned: 2, stopped: 4, token: 7, fence: 7}
	permit := try{called: 1, returned: 2, stopped: 4, units: 1, capacity: 2, token: 7}
	for _, row := range []struct {
		name   string
		events []judge.Event
		want   judge.Charge // "" for none
	}{
		{"one after the other", history(first, try{called: 3, returned: 5, stopped: 6, token: 8, fence: 8}), ""},
		{"a window ends as the next begins", history(first, try{called: 3, returned: 4, stopped: 6, token: 8, fence: 8}), ""},
		{"two mutexes at once", history(first, try{called: 3, returned: 3, stopped: 6, token: 8, fence: 8}), judge.Overlap},
		{"on two names", history(first, try{called: 3, returned: 3, stopped: 6, token: 8, fence: 8, key: "l"}), ""},
		{"the first stopped trusting in time", history(
			try{called: 1, returned: 2, stopped: 9, until: 4, token: 7, fence: 7, end: judge.Lost},
			try{called: 3, returned: 5, stopped: 6, token: 8, fence: 8}), ""},
		{"the first proved itself for too long", append(history(
			try{called: 1, returned: 2, stopped: 9, until: 4, token: 7, fence: 7, end: judge.Lost},
			try{called: 3, returned: 5, stopped: 6, token: 8, fence: 8}),
			judge.Event{Kind: judge.Proved, Attempt: 1, At: 5 * s, Until: 6 * s, Key: "k"}), judge.Overlap},
		{"the first never stopped", history(
			try{called: 1, returned: 2, token: 7, fence: 7},
			try{called: 3, returned: 5, stopped: 6, token: 8, fence: 8}), judge.Overlap},
		{"a reader beside a writer", history(first,
			try{called: 3, returned: 3, stopped: 6, units: 1, capacity: shared, token: 8, fence: 8}), judge.Overlap},
		{"readers", history(
			try{called: 1, returned: 2, stopped: 6, units: 1, capacity: shared, token: 7, fence: 7},
			try{called: 3, returned: 4, stopped: 9, units: 1, capacity: shared, token: 8, fence: 7}), ""},
		{"counted up to the smallest capacity", history(
			try{called: 1, returned: 2, stopped: 6, units: 2, capacity: 5, token: 1},
			try{called: 3, returned: 4, stopped: 9, units: 1, capacity: 3, token: 2}), ""},
		{"counted over the smallest capacity", history(
			try{called: 1, returned: 2, stopped: 6, units: 2, capacity: 3, token: 1},
			try{called: 3, returned: 4, stopped: 9, units: 2, capacity: 5, token: 2}), judge.Overlap},
		{"three are one too many", history(
			try{called: 1, returned: 2, stopped: 9, units: 1, capacity: 2, token: 1},
			try{called: 1, returned: 3, stopped: 9, units: 1, capacity: 2, token: 2},
			try{called: 1, returned: 4, stopped: 9, units: 1, capacity: 2, token: 3}), judge.Overlap},

		{"it ran after it was known to be done", append(history(
			try{called: 6, returned: 7, stopped: 8, token: 8, fence: 8}), mark(judge.Done, 5)), judge.Twice},
		{"it ran twice before anyone knew", append(history(first,
			try{called: 5, returned: 6, stopped: 7, token: 8, fence: 8}), mark(judge.Done, 9), mark(judge.Done, 5)), ""},
		{"it was asked for after it was done", append(history(
			try{called: 6, returned: 7, failed: true}), mark(judge.Done, 5)), ""},

		{"a token twice", history(permit, try{called: 1, returned: 5, stopped: 6, units: 1, capacity: 2, token: 7}), judge.Token},
		{"a token falls while both asked", history(permit, try{called: 1, returned: 5, stopped: 6, units: 1, capacity: 2, token: 6}), ""},
		{"a token falls from return to call", history(permit, try{called: 3, returned: 6, stopped: 7, units: 1, capacity: 2, token: 6}), judge.Token},
		{"an unknown token judges nothing", history(
			first, try{called: 5, returned: 6, stopped: 7, fence: 8}, try{called: 8, returned: 9, stopped: 9, token: 9, fence: 9}), ""},

		{"a mutex without a fence", history(try{called: 1, returned: 2, stopped: 4, token: 7}), judge.Fence},
		{"a mutex's fence is not its token", history(try{called: 1, returned: 2, stopped: 4, token: 7, fence: 8}), judge.Fence},
		{"an exclusive fence twice", history(
			try{called: 1, returned: 2, stopped: 4, fence: 7}, try{called: 1, returned: 5, stopped: 6, fence: 7}), judge.Fence},
		{"an exclusive fence falls", history(
			try{called: 1, returned: 2, stopped: 4, fence: 7}, try{called: 3, returned: 5, stopped: 6, fence: 6}), judge.Fence},
		{"a reader has a writer's fence", history(
			first, try{called: 5, returned: 6, stopped: 7, units: 1, capacity: shared, token: 8, fence: 7}), judge.Fence},
		{"a reader without a fence", history(
			try{called: 5, returned: 6, stopped: 7, units: 1, capacity: shared, token: 8}), judge.Fence},
		{"a writer has a reader's fence", history(
			try{called: 1, returned: 2, stopped: 4, units: 1, capacity: shared, token: 7, fence: 7},
			try{called: 5, returned: 6, stopped: 7, fence: 7}), judge.Fence},
		{"readers of later generations fall", history(
			try{called: 1, returned: 2, stopped: 4, units: 1, capacity: shared, token: 7, fence: 7},
			try{called: 5, returned: 6, stopped: 7, units: 1, capacity: shared, token: 8, fence: 6}), judge.Fence},
		{"readers at once with two fences", history(
			try{called: 1, returned: 2, stopped: 6, units: 1, capacity: shared, token: 7, fence: 7},
			try{called: 1, returned: 4, stopped: 9, units: 1, capacity: shared, token: 8, fence: 8}), judge.Fence},
		{"a counted claim with a fence", history(
			try{called: 1, returned: 2, stopped: 6, units: 1, capacity: 2, token: 7, fence: 7}), judge.Fence},

		{"refused because of a holder", history(first, try{called: 3, returned: 4, refused: true}), ""},
		{"refused because of one who has just gone", history(first, try{called: 4, returned: 5, refused: true}), ""},
		{"refused because of nobody", history(first, try{called: 6, returned: 7, refused: true}), judge.Refusal},
		{"refused by itself alone", history(try{called: 6, returned: 7, refused: true}), judge.Refusal},
		{"refused because of one who may have come", history(
			try{called: 1, returned: 2, failed: true}, try{called: 6, returned: 7, refused: true}), ""},
		{"refused because of one who died", history(
			try{called: 1, returned: 2, until: 5, token: 7, fence: 7}, try{called: 6, returned: 7, refused: true}), ""},
		{"refused because of one who comes later", history(
			try{called: 6, returned: 7, refused: true}, try{called: 8, returned: 9, stopped: 10, token: 7, fence: 7}), judge.Refusal},
		{"two refused because of each other", history(
			try{called: 1, returned: 4, refused: true}, try{called: 2, returned: 3, refused: true}), ""},

		{"a waiter in time", append(history(
			try{called: 11, returned: 12, stopped: 20, token: 7, fence: 7},
			try{called: 12, returned: 24, stopped: 30, token: 8, fence: 8, waits: true}), mark(judge.Healed, 0)), ""},
		{"a waiter is forgotten", history(
			try{called: 11, returned: 12, stopped: 20, token: 7, fence: 7},
			try{called: 12, returned: 26, stopped: 30, token: 8, fence: 8, waits: true}), judge.Stall},
		{"a waiter is forgotten for ever", append(history(
			try{called: 11, returned: 12, stopped: 20, token: 7, fence: 7},
			try{called: 12, waits: true}), judge.Event{Kind: judge.Healed, At: 40 * s}), judge.Stall},
		{"a waiter beside a fault", append(history(
			try{called: 11, returned: 12, stopped: 20, token: 7, fence: 7},
			try{called: 12, returned: 34, stopped: 35, token: 8, fence: 8, waits: true}),
			mark(judge.Fault, 22), mark(judge.Healed, 24)), ""},
		{"a waiter long after a fault", append(history(
			try{called: 11, returned: 12, stopped: 20, token: 7, fence: 7},
			try{called: 12, returned: 44, stopped: 45, token: 8, fence: 8, waits: true}),
			mark(judge.Fault, 22), mark(judge.Healed, 24)), judge.Stall},

		{"something is left", append(history(first), mark(judge.Left, 9)), judge.Leftover},
		{"an event of nobody", []judge.Event{{Kind: judge.Granted, Attempt: 1, At: s, Key: "k"}}, judge.Malformed},
		{"released before let go", []judge.Event{
			{Kind: judge.Called, Attempt: 1, At: s, Key: "k", Units: 1, Capacity: 1},
			{Kind: judge.Released, Attempt: 1, At: s, Key: "k"},
		}, judge.Malformed},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := judge.Judge(row.events, rules)
			switch {
			case row.want == "" && len(got) > 0:
				t.Errorf("convicted the innocent: %v", got)
			case row.want != "" && (len(got) == 0 || slices.ContainsFunc(got, func(v judge.Violation) bool { return v.Charge != row.want })):
				t.Errorf("got %v, want %s and nothing else", got, row.want)
			}
		})
	}
}

// TestJudgeFindsOneInMany plants one overlap in a long clean history.
func TestJudgeFindsOneInMany(t *testing.T) {
	t.Parallel()
	const n = 30_000
	rng := rand.New(rand.NewPCG(1, 2))
	planted := n/2 + rng.IntN(1000)
	var events []judge.Event
	for i := range n {
		at := 10 * (i + 1)
		a := try{called: at, returned: at + 1, stopped: at + 8, token: uint64(i + 1), fence: uint64(i + 1), key: fmt.Sprint(i % 3)}
		a.stopped += 20 // names take turns
		if i == planted {
			a.stopped += 10
		}
		events = append(events, a.events(i+1)...)
	}
	got := judge.Judge(events, judge.Rules{Tokens: true})
	if len(got) != 1 || got[0].Charge != judge.Overlap || !strings.Contains(got[0].What, fmt.Sprintf("attempt %d ", planted+1)) {
		t.Errorf("got %v, want one overlap of attempt %d", got, planted+1)
	}
}
