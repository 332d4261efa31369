package drivertest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest/judge"
)

// A nemesis breaks the links of clients, and kills clients.
type nemesis struct {
	*arena
	faults *tally
	rng    *rand.Rand
	procs  []*proc // those that live, by slot
	dead   []*proc
	born   int
}

func newNemesis(a *arena, faults *tally) *nemesis {
	return &nemesis{arena: a, faults: faults, rng: a.random(1, 0), procs: make([]*proc, a.Procs)}
}

// spawn puts a new client into slot.
func (n *nemesis) spawn(slot int) {
	n.born++
	// Every fourth uses the store's own methods and believes a TTL: that is no proof
	// where a session that ends frees at once.
	plain := slot%4 == 3 && n.Facts.Survival != driver.BySession
	p := newProc(n.arena, n.born, plain)
	n.procs[slot] = p
	n.wg.Go(p.run) // ends with the arena, or with the client
}

// rage alternates between spells of faults and calms that are long enough to be
// judged, until the time is over.
func (n *nemesis) rage() {
	calm := 2 * (n.rules().Settle + n.rules().Bound)
	if !n.Bubble {
		calm = min(calm, n.For/4)
	}
	for stop := time.Now().Add(n.For); time.Now().Before(stop); {
		if n.Calm {
			time.Sleep(time.Until(stop))
			return
		}
		n.spell()
		time.Sleep(time.Duration((0.2 + n.rng.Float64()) * float64(calm)))
	}
}

// spell breaks a few things for a while and mends them.
func (n *nemesis) spell() {
	n.history.Add(judge.Event{Kind: judge.Fault})
	var broken sync.WaitGroup
	if n.Restart != nil && n.rng.IntN(3) == 0 {
		n.restart()
	}
	for i := range 1 + n.rng.IntN(4) {
		slot := n.rng.IntN(len(n.procs))
		if n.rng.IntN(6) == 0 || n.Kills && i == 0 {
			n.kill(slot)
			continue
		}
		p, phases, late := n.procs[slot], n.phases(), n.part(1)
		p.broken.Add(1)
		p.touched.Add(1)
		broken.Go(func() { // ends after the faults
			for _, f := range phases {
				if f.request+f.reply > 0 {
					n.faults.add("slow link", 1)
				}
				p.link.Delay(f.request, f.reply)
				p.link.Set(f.fault)
				time.Sleep(f.long)
			}
			p.link.Set(Pass)
			p.link.Delay(0, 0)
			time.Sleep(late)
			p.link.Land()
			p.touched.Add(1)
			p.broken.Add(-1)
		})
	}
	broken.Wait()
	n.history.Add(judge.Event{Kind: judge.Healed})
}

// A phase is one state of a broken link.
type phase struct {
	fault          Fault
	request, reply time.Duration
	long           time.Duration
}

// phases picks what happens to a link: mostly a few different things in a row,
// because silence after a slow answer is worse than either. On a store that frees
// by session no request outlives its session: none comes late.
func (n *nemesis) phases() []phase {
	some := make([]phase, 1+n.rng.IntN(4))
	for i := range some {
		some[i].long = n.part(1.5)
		if n.rng.IntN(3) > 0 {
			some[i].fault = Faults[n.rng.IntN(len(Faults))]
		}
		if some[i].fault == Pass || n.rng.IntN(4) == 0 {
			some[i].request, some[i].reply = n.part(0.2), n.part(0.3)
		}
		if n.Facts.Survival == driver.BySession {
			some[i].request = 0
			if some[i].fault == Late {
				some[i].fault = DropReplies
			}
		}
	}
	return some
}

// part is a random part of so many TTLs.
func (n *nemesis) part(ttls float64) time.Duration {
	return time.Duration(n.rng.Float64() * ttls * float64(n.ttl))
}

// kill ends the client in slot as kill -9 does, and puts another in its place.
func (n *nemesis) kill(slot int) {
	p := n.procs[slot]
	n.faults.add("kill", 1)
	p.kill()
	n.dead = append(n.dead, p)
	n.spawn(slot)
}

// restart ends what the clients share as kill -9 does, and starts it again.
func (n *nemesis) restart() {
	n.faults.add("restart", 1)
	for _, p := range n.procs {
		p.touched.Add(1)
	}
	n.Restart(n.t)
	for _, p := range n.procs {
		p.touched.Add(1)
	}
}

// rest closes every client. A living one must be able to give back all that it
// had.
func (n *nemesis) rest() {
	for _, p := range n.procs {
		ctx, cancel := context.WithTimeout(context.Background(), 4*n.longTTL()+n.Grace())
		if err := p.close(ctx); err != nil {
			n.t.Errorf("client %d: %v", p.number, err)
		}
		cancel()
	}
	for _, p := range append(n.procs, n.dead...) {
		for f, k := range p.link.Injected() {
			n.faults.add(f.String(), k)
		}
	}
}

// injected counts the faults that hit something.
func (n *nemesis) injected() int {
	sum := 0
	for _, f := range append([]string{"kill", "restart", "slow link"}, faults[1:]...) {
		sum += n.faults.get(f)
	}
	return sum
}
