package redislock_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
	protocol "github.com/dibslock/dibs/redislock/internal/quorum"
	"github.com/dibslock/dibs/redislock/internal/quorum/model"
)

// a node is a real node of a quorum, asked script by script about one name.
type node struct {
	t      testing.TB
	r      *servers.RedisServer
	conn   *servers.RESP // to r
	prefix string
	marker string
	base   uint64 // from which the counter of an unknown name starts
	number uint64
}

const aName = "orders/42"

// newNodes makes n servers the nodes of a quorum.
func newNodes(t testing.TB, n int) []*node {
	t.Helper()
	rs := servers.Redises(t, n)
	newQuorum(t, addrsOf(rs), "prefix=p")
	var all []*node
	for _, r := range rs {
		conn, err := r.Dial()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		d := &node{t: t, r: r, conn: conn, prefix: "p:redlock:"}
		d.marker = do(t, r, "HGET", d.prefix+"node", "id").(string)
		d.base, _ = strconv.ParseUint(do(t, r, "HGET", d.prefix+"node", "base").(string), 10, 64)
		all = append(all, d)
	}
	return all
}

// do sends the node one command.
func (d *node) do(args ...any) any {
	d.t.Helper()
	v, err := d.conn.Do(args...)
	if err != nil {
		d.t.Fatalf("%v: %v", args, err)
	}
	return v
}

func (d *node) key() string { return d.prefix + "name:{" + aName + "}" }

// run runs one script about claim c. Counters are told from the node's base on.
func (d *node) run(script string, c uint8, fence uint64, more ...any) protocol.Vote {
	d.t.Helper()
	d.number++
	if fence > 0 {
		fence += d.base
	}
	who, what := redislock.PackQuorum(fmt.Sprint("claim", c), fence, time.Hour, "tester", d.number)
	args := []any{"EVAL", redislock.QuorumScripts[script], 3, d.prefix + "node", d.prefix + "names", d.key(), d.marker, 1}
	switch script {
	case "ask":
		args = append(args, who, what, "3600000000", "3600000000")
	case "revoke":
		args = append(args, fence, "0")
	default:
		args = append(args, who, what)
	}
	v := d.do(append(args, more...)...)
	if all, ok := v.([]any); ok && len(all) == 1 {
		v = all[0] // the answer about one claim, or the one word
	}
	var word string
	var counter uint64
	switch v := v.(type) {
	case string:
		fmt.Sscan(v, &word, &counter)
	case []any:
		word = v[0].(string)
		if word == "passed" || word == "behind" {
			if len(v) > 1 {
				counter, _ = strconv.ParseUint(v[1].(string), 10, 64)
			}
		}
	}
	if counter > 0 {
		counter -= d.base
	}
	kinds := map[string]protocol.Kind{
		"mine": protocol.Mine, "passed": protocol.Passed, "behind": protocol.Behind, "held": protocol.Held, "free": protocol.Held, "revoked": protocol.Held, "novote": protocol.NoVote,
	}
	kind, ok := kinds[word]
	if !ok {
		d.t.Fatalf("%s answered %v", script, v)
	}
	return protocol.Vote{Kind: kind, Counter: counter}
}

func (d *node) ask(c uint8) protocol.Vote                  { return d.run("ask", c, 0) }
func (d *node) settle(c uint8, fence uint64) protocol.Vote { return d.run("settle", c, fence) }
func (d *node) renew(c uint8, fence uint64) protocol.Vote  { return d.run("renew", c, fence) }
func (d *node) revoke(fence uint64) protocol.Vote          { return d.run("revoke", 0, fence) }

// release frees as quorum.Node.Release does: at once also where the counter is
// behind.
func (d *node) release(c uint8, fence uint64) {
	how := "s"
	if fence == 0 {
		how = "f"
	}
	d.run("release", c, fence, how)
}

// drop ends the claim, as an operator would: nobody has the name any more.
func (d *node) drop() {
	if v, _ := d.do("GET", d.key()).(string); v != "" && v[0] != 'f' {
		var c uint64
		fmt.Sscanf(v[1:], "%d ", &c)
		d.do("SET", d.key(), fmt.Sprintf("f%d 0 1", c))
	}
}

// forget makes the node forget the name, as it does after a while.
func (d *node) forget() {
	d.do("HSET", d.prefix+"node", "idle", "0")
	for d.do("EXISTS", d.key()) == int64(1) {
		who, what := redislock.PackQuorum("nobody", 0, time.Hour, "tester", 1)
		d.do("EVAL", redislock.QuorumScripts["release"], 3, d.prefix+"node", d.prefix+"names", d.prefix+"name:{other}", d.marker, 1, who, what, "f")
	}
	d.do("HSET", d.prefix+"node", "idle", "60000000")
}

// TestNodesDoAsTheModelDoes gives the same random requests to a real node and to
// the one that the model checker uses, and compares every answer.
func TestNodesDoAsTheModelDoes(t *testing.T) {
	t.Parallel()
	d := newNodes(t, 3)[0]
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		do(t, d.r, "DEL", d.key())
		do(t, d.r, "HSET", d.prefix+"node", "base", d.base)
		var sample protocol.Node
		var story []string
		for range 50 {
			c, fence := uint8(1+rnd.IntN(3)), uint64(1+rnd.IntN(int(sample.Counter)+2))
			op := rnd.IntN(12)
			story = append(story, fmt.Sprintf("op %d claim %d fence %d, of %+v", op, c, fence, sample))
			var got, want protocol.Vote
			switch op {
			case 0, 1, 2:
				got, want = d.ask(c), sample.Ask(c)
			case 3, 4:
				got, want = d.settle(c, fence), sample.Settle(c, fence)
			case 5, 6:
				got, want = d.renew(c, fence), sample.Renew(c, fence)
			case 7:
				d.release(c, 0)
				sample.Release(c, 0)
			case 8:
				d.release(c, fence)
				sample.Release(c, fence)
			case 9:
				d.drop()
				sample.Drop()
			case 10:
				if sample.Holder != 0 || rnd.IntN(4) > 0 {
					continue
				}
				d.forget()
				sample.Forget(sample.Counter)
			case 11:
				if rnd.IntN(3) > 0 {
					continue
				}
				got, want = d.revoke(fence), sample.Revoke(fence)
			}
			if !alike(got, want) {
				t.Fatalf("seed %d: the node answers %+v, and the model %+v:\n%v", seed, got, want, story)
			}
		}
	}
}

// alike tells whether two answers say the same. The counter of a refusal nobody looks
// at, and those of Settle are the fence, or say by how much it was passed.
func alike(got, want protocol.Vote) bool {
	switch want.Kind {
	case protocol.Held, protocol.NoVote:
		return got.Kind == want.Kind
	case protocol.Mine:
		return got.Kind == want.Kind && (got.Counter == 0 || got.Counter == want.Counter)
	}
	return got == want
}

// TestSchedulesOnRealNodes has real nodes do what the nodes of the model do in its
// random schedules, with requests that are lost, late and double, names that are
// forgotten and taken away, and a node that loses its memory and is readmitted; it
// compares every answer.
func TestSchedulesOnRealNodes(t *testing.T) {
	count := uint64(200)
	if testing.Short() {
		count = 50 // under the race detector
	}
	for _, n := range []int{3, 5} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			ns := newNodes(t, n)
			answers := make(map[protocol.Kind]int)
			for seed := range count {
				for _, d := range ns {
					d.do("DEL", d.key(), d.prefix+"names")
					d.do("HSET", d.prefix+"node", "id", d.marker, "base", d.base)
				}
				var story []string
				model.Schedule(n, seed, func(c model.Call) {
					story = append(story, fmt.Sprintf("%+v", c))
					if t.Failed() {
						return
					}
					if got := ns[c.Node].play(c); !alike(got, c.Vote) {
						t.Errorf("seed %d: the node answers %+v:\n%s", seed, got, strings.Join(story, "\n"))
					}
					answers[c.Vote.Kind]++
				})
				if t.Failed() {
					return
				}
			}
			for kind := protocol.NoVote; kind <= protocol.Passed; kind++ {
				if answers[kind] == 0 {
					t.Errorf("no node ever gave the answer %d: %v", kind, answers)
				}
			}
		})
	}
}

// play has the node do what the model's did.
func (d *node) play(c model.Call) (v protocol.Vote) {
	fence := uint64(c.Fence)
	switch c.Op {
	case model.Ask:
		return d.ask(c.Claim)
	case model.Settle:
		return d.settle(c.Claim, fence)
	case model.Renew:
		return d.renew(c.Claim, fence)
	case model.Revoke:
		return d.revoke(fence)
	case model.Release:
		d.release(c.Claim, fence)
	case model.Drop:
		d.drop()
	case model.Forget:
		d.do("HSET", d.prefix+"node", "base", d.base+fence)
		d.forget()
	case model.Amnesia:
		d.do("DEL", d.key(), d.prefix+"names")
		d.do("HDEL", d.prefix+"node", "id")
	case model.Readmit:
		d.do("HSET", d.prefix+"node", "id", d.marker, "base", d.base+fence)
	}
	return v
}

// The counterexamples to the usual way, step by step on real nodes: in the first
// it grants two claims the same fence, in the second the later holder the smaller
// one. Here the node that would let it happen says that its counter has passed.
func TestPublishedCounterexamples(t *testing.T) {
	t.Parallel()
	mine := func(c uint64) protocol.Vote { return protocol.Vote{Kind: protocol.Mine, Counter: c} }
	is := func(t *testing.T, got, want protocol.Vote) {
		t.Helper()
		if got.Kind != want.Kind || want.Counter != 0 && got.Counter != 0 && got.Counter != want.Counter {
			t.Fatalf("answered %+v, want %+v", got, want)
		}
	}
	passed := protocol.Vote{Kind: protocol.Passed, Counter: 3}
	t.Run("tie", func(t *testing.T) {
		t.Parallel()
		ns := newNodes(t, 3)
		x, y, z := ns[0], ns[1], ns[2]
		is(t, x.ask(1), mine(1))
		x.drop()
		is(t, y.ask(1), mine(1))
		is(t, x.ask(2), mine(2))
		is(t, z.ask(2), mine(1))
		z.drop()
		is(t, z.ask(1), mine(2)) // claim 1 has Y and Z, and settles on 2
		is(t, y.settle(1, 2), mine(2))
		is(t, z.settle(1, 2), mine(2))
		y.drop()
		is(t, y.ask(2), mine(3)) // arrives late; claim 2 has X and Z, and settles on 2
		is(t, x.settle(2, 2), mine(2))
		is(t, y.settle(2, 2), passed)
		is(t, x.settle(2, 3), mine(3))
		is(t, y.settle(2, 3), mine(3))
	})
	t.Run("inversion", func(t *testing.T) {
		t.Parallel()
		ns := newNodes(t, 3)
		x, y, z := ns[0], ns[1], ns[2]
		is(t, x.ask(1), mine(1))
		x.drop()
		is(t, y.ask(1), mine(1))
		is(t, x.ask(2), mine(2))
		is(t, z.ask(2), mine(1))
		is(t, x.settle(2, 2), mine(2))
		is(t, z.settle(2, 2), mine(2)) // claim 2 is granted under 2
		z.drop()
		is(t, z.ask(1), mine(3)) // arrives late; claim 1 has X and Y, and settles on 1
		is(t, y.settle(1, 1), mine(1))
		is(t, z.settle(1, 1), passed)
	})
}

// A node that is free again does not prove what it forgot, and one that was taken
// by a straggler after a newer grant does not either.
func TestRenewalIsNotByTokenAlone(t *testing.T) {
	t.Parallel()
	d := newNodes(t, 3)[0]
	d.ask(1)
	d.drop()
	d.ask(2)
	d.release(2, 2)
	d.ask(1) // late
	if v := d.renew(1, 1); v.Kind == protocol.Mine {
		t.Errorf("proved under 1 after 2 was granted: %+v", v)
	}
}

// Whoever asks, settles or renews again has the name for its TTL from then on.
func TestRepeatsExtend(t *testing.T) {
	t.Parallel()
	d := newNodes(t, 3)[0]
	until := func() (us int64) {
		t.Helper()
		v := do(t, d.r, "GET", d.key()).(string)
		who, _ := redislock.PackQuorum("claim1", 0, time.Hour, "tester", 1)
		_, rest, _ := strings.Cut(v, who[2:])
		if _, err := fmt.Sscan(rest, &us); err != nil {
			t.Fatalf("the state %q: %v", v, err)
		}
		return us
	}
	d.ask(1)
	last := until()
	for what, again := range map[string]func() protocol.Vote{
		"ask":    func() protocol.Vote { return d.ask(1) },
		"settle": func() protocol.Vote { return d.settle(1, 1) },
		"renew":  func() protocol.Vote { return d.renew(1, 1) },
	} {
		if v := again(); v.Kind != protocol.Mine {
			t.Fatalf("%s: %+v", what, v)
		}
		now := until()
		if now <= last {
			t.Errorf("%s: until %d, and before it until %d", what, now, last)
		}
		last = now
	}
}

// A name that is free for long enough is forgotten, and its counter goes on.
func TestQuorumForgets(t *testing.T) {
	t.Parallel()
	d := newNodes(t, 3)[0]
	for i := range uint64(3) {
		if v := d.ask(1); v.Counter != i+1 {
			t.Fatalf("counter %d, want %d", v.Counter, i+1)
		}
		d.release(1, i+1)
	}
	d.forget()
	keys := do(t, d.r, "KEYS", "*").([]any)
	slices.SortFunc(keys, func(a, b any) int { return len(a.(string)) - len(b.(string)) })
	if len(keys) != 1 || keys[0] != d.prefix+"node" {
		t.Errorf("all is forgotten, and there is %v", keys)
	}
	if v := d.ask(2); v.Counter != 4 {
		t.Errorf("counter %d after 3", v.Counter)
	}
	// What is held is not forgotten.
	do(t, d.r, "HSET", d.prefix+"node", "idle", "0")
	for range 500 {
		d.run("release", 9, 0, "f")
	}
	if v := d.renew(2, 4); v.Kind != protocol.Mine {
		t.Errorf("the holder was forgotten: %+v", v)
	}
}
