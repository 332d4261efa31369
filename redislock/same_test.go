package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/memlock"
)

// TestAnswersAsTheReferenceDoes gives the same random calls to this store and to
// memlock, which is the definition of the laws, and compares every answer and
// what is listed after it. No time passes by either clock.
func TestAnswersAsTheReferenceDoes(t *testing.T) {
	r := servers.SharedRedis(t)
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			params := space()
			if seed%4 == 2 { // the clock is behind the mark
				do(t, r, "SET", strings.TrimPrefix(params, "prefix=")+":mark", "7000000000000000")
			}
			compare(t, open(t, r.Addr(), params+[]string{"", "&journal=on"}[seed%2]), memlock.New(memlock.Options{}), rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

// a twin is one store of the two, and the numbers that it gave out, in order.
type twin struct {
	driver.Store
	tokens map[string]uint64 // by ID
	seen   []uint64
}

func compare(t *testing.T, a, b driver.Store, rnd *rand.Rand) {
	twins := []*twin{{Store: a, tokens: make(map[string]uint64)}, {Store: b, tokens: make(map[string]uint64)}}
	ids := []string{"a", "b", "c", "d", "e", "f"}
	kinds := [][2]int{{1, 1}, {1, 1}, {1, driver.Unlimited}, {1, driver.Unlimited}, {1, 3}, {2, 3}, {1, 2}, {3, 3}}
	pick := func(some []string) string { return some[rnd.IntN(len(some))] }
	claims := make(map[string]driver.Claim)
	var story []string
	for step := range 60 {
		id := pick(ids)
		c, again := claims[id]
		if !again || rnd.IntN(3) == 0 {
			k := kinds[rnd.IntN(len(kinds))]
			c = driver.Claim{Name: "name", ID: id, Units: k[0], Capacity: k[1], TTL: time.Hour, Note: "note " + id}
			if rnd.IntN(2) == 0 {
				c.Patience = time.Hour
			}
			if rnd.IntN(6) == 0 {
				c.Keep = time.Hour
			}
			if rnd.IntN(4) == 0 {
				c.From = pick(ids)
				if c.From == id {
					c.From = ""
				}
			}
			c.Barging = rnd.IntN(6) == 0
		}
		op := rnd.IntN(10)
		now := rnd.IntN(2) == 0
		claims[id] = c
		story = append(story, fmt.Sprintf("%d: op %d %+v", step, op, c))
		var said []string
		for _, w := range twins {
			said = append(said, w.do(op, c, now)+"\n"+w.listed(t))
		}
		if said[0] != said[1] {
			t.Fatalf("%s\nredis: %s\nmemlock: %s", story, said[0], said[1])
		}
	}
}

// TestACrowdIsAnsweredAsByTheReference does what a crowd does that locks and
// unlocks, which mostly goes the short way in the scripts.
func TestACrowdIsAnsweredAsByTheReference(t *testing.T) {
	r := servers.SharedRedis(t)
	const acquire, release, byID, renew = 0, 5, 6, 8
	for _, change := range []func(*driver.Claim){
		func(*driver.Claim) {},
		func(c *driver.Claim) { c.Keep = time.Hour },
		func(c *driver.Claim) { c.Delay = time.Hour },
		func(c *driver.Claim) { c.Capacity = driver.Unlimited },
		func(c *driver.Claim) { c.Units, c.Capacity = 2, 2 },
		func(c *driver.Claim) { c.Barging = true },
	} {
		for _, params := range []string{"", "&journal=on"} {
			for _, odd := range []string{"", "a", "b", "c", "d"} { // the one that is changed; "": all
				s := open(t, r.Addr(), space()+params)
				twins := []*twin{{Store: s, tokens: make(map[string]uint64)}, {Store: memlock.New(memlock.Options{}), tokens: make(map[string]uint64)}}
				var story strings.Builder
				for _, step := range []struct {
					op int
					id string
				}{
					{acquire, "a"},
					{acquire, "a"},
					{acquire, "b"},
					{acquire, "c"},
					{acquire, "a"},
					{acquire, "c"},
					{release, "a"},
					{acquire, "b"},
					{acquire, "a"},
					{acquire, "d"},
					{release, "b"},
					{release, "b"},
					{renew, "c"},
					{acquire, "b"},
					{byID, "d"},
					{release, "c"},
					{acquire, "a"},
					{acquire, "c"},
					{release, "a"},
					{acquire, "b"},
					{release, "b"},
					{acquire, "c"},
					{release, "c"},
					{acquire, "d"},
					{release, "d"},
					{acquire, "a"},
					{acquire, "b"},
					{release, "a"},
					{acquire, "b"},
					{release, "b"},
					{acquire, "c"},
					{release, "c"},
					{acquire, "a"},
					{acquire, "b"},
					{release, "a"},
					{renew, "b"},
					{release, "b"},
					{acquire, "c"},
					{release, "c"},
				} {
					c := driver.Claim{Name: "name", ID: step.id, Units: 1, Capacity: 1, TTL: time.Hour, Patience: time.Hour, Note: "note " + step.id}
					if odd == "" || odd == step.id {
						change(&c)
					}
					story.WriteString(fmt.Sprintf(" %d%s", step.op, step.id))
					var said []string
					for _, w := range twins {
						said = append(said, w.do(step.op, c, false)+"\n"+w.listed(t))
					}
					if said[0] != said[1] {
						t.Fatalf("%s %q, changed %q:%s\nredis: %s\nmemlock: %s", params, odd, fmt.Sprint(c), story.String(), said[0], said[1])
					}
				}
			}
		}
	}
}

// do makes one call and tells the answer without numbers that may differ.
func (w *twin) do(op int, c driver.Claim, now bool) string {
	ctx := context.Background()
	token := w.tokens[c.ID]
	switch op {
	case 0, 1, 2, 3, 4:
		g, err := w.Acquire(ctx, c)
		if err != nil {
			return w.told(err)
		}
		w.tokens[c.ID] = g.Token
		return fmt.Sprintf("granted %d/%d took %v ttl %v", w.rank(g.Token), w.rank(g.Fence), g.TookOver, g.TTL)
	case 5, 6:
		if op == 5 {
			c.Token = token
		}
		return w.told(w.Release(ctx, c))
	case 7, 8:
		if op == 7 {
			c.Token = token
		}
		p := drivertest.RenewOne(ctx, w, c)
		s := w.told(p.Err) + fmt.Sprint(" ", p.TTL)
		if p.Grant != nil {
			w.tokens[c.ID] = p.Grant.Token
			s += fmt.Sprintf(" granted %d/%d took %v", w.rank(p.Grant.Token), w.rank(p.Grant.Fence), p.Grant.TookOver)
		}
		return s
	default:
		return w.told(w.Store.(driver.Revoker).Revoke(ctx, driver.Revocation{Name: c.Name, Token: token, Now: now}))
	}
}

// rank is the position of n among the numbers given out: stores count
// differently, in the same order.
func (w *twin) rank(n uint64) int {
	if n == 0 {
		return 0
	}
	if !slices.Contains(w.seen, n) {
		w.seen = append(w.seen, n)
		slices.Sort(w.seen)
	}
	return slices.Index(w.seen, n) + 1
}

func (w *twin) told(err error) string {
	var held *driver.HeldError
	var not *driver.NotHeldError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &held):
		return fmt.Sprintf("held by %s reserved %v place %d deadlock %v soon %v", w.shown(held.Holder), held.Reserved,
			w.rank(held.Place), held.Deadlock, held.RetryAfter.Round(time.Minute))
	case errors.As(err, &not):
		return "nothing, now " + w.shown(not.By)
	case errors.Is(err, driver.ErrRevoked):
		return "revoked"
	case errors.Is(err, driver.ErrRejected):
		return "rejected"
	}
	return "unknown: " + err.Error()
}

func (w *twin) shown(h *driver.Holder) string {
	if h == nil {
		return "nobody"
	}
	return fmt.Sprintf("{%s %s token %d fence %d %d/%d place %d left %v ttl %v %s}", h.Name, h.State, w.rank(h.Token), w.rank(h.Fence),
		h.Units, h.Capacity, w.rank(h.Place), h.Left.Round(time.Minute), h.TTL, h.Note)
}

func (w *twin) listed(t *testing.T) (all string) {
	for h, err := range w.Store.(driver.Lister).List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all += w.shown(&h) + "\n"
	}
	return all
}
