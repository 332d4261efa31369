package drivertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest/judge"
)

// A proc is one client of a torture.
type proc struct {
	*arena
	number  int
	rng     *rand.Rand
	store   driver.Store
	link    Link
	client  *dibs.Client // nil: it uses the store's own methods
	life    context.Context
	die     context.CancelFunc
	touched atomic.Int64 // grows whenever a fault begins or ends
	broken  atomic.Int64 // how many faults there are now
}

func newProc(a *arena, number int, plain bool) *proc {
	p := &proc{arena: a, number: number, rng: a.random(2, uint64(number))}
	p.store, p.link = a.Link(a.t)
	p.life, p.die = context.WithCancel(a.end)
	if !plain {
		client, err := dibs.New(p.store, &dibs.Options{Settings: a.settings()})
		if err != nil {
			a.t.Fatal(err)
		}
		p.client = client
	}
	return p
}

// run makes attempts until the client's life ends.
func (p *proc) run() {
	for p.life.Err() == nil {
		switch want := p.want(); {
		case p.client == nil:
			p.plain(want)
		case p.rng.IntN(6) == 0:
			p.made()
		default:
			p.attempt(want)
		}
		p.pause(p.upTo(0.2))
	}
}

// sound returns a func that tells whether no fault can have hit what was asked since.
// While there is one, also one from before, requests may be late, and land when
// nobody thinks of them any more.
func (p *proc) sound() func() bool {
	touched, broken := p.touched.Load(), p.broken.Load() // in this order: a fault is counted first
	return func() bool { return broken == 0 && p.touched.Load() == touched }
}

// upTo is a random part of so many TTLs.
func (p *proc) upTo(ttls float64) time.Duration {
	return time.Duration(p.rng.Float64() * ttls * float64(p.ttl))
}

// pause sleeps for d or until the client's life ends.
func (p *proc) pause(d time.Duration) { sleep(p.life, d) }

// want picks a name and a kind of claim that the store grants.
func (p *proc) want() driver.Claim {
	name := p.names[p.rng.IntN(len(p.names))]
	for {
		c := Mutex(name, p.ttl)
		switch p.rng.IntN(5) {
		case 0:
			c = Reader(name, p.ttl)
		case 1:
			c = Permit(name, 1+p.rng.IntN(2), 3, p.ttl)
		}
		if p.Facts.Modes&c.Mode() != 0 {
			return c
		}
	}
}

// an event of attempt id on c's name.
func (p *proc) tell(k judge.Kind, id int, c driver.Claim, until time.Duration) {
	p.history.Add(judge.Event{Kind: k, Attempt: id, Proc: p.number, Key: c.Name, Until: until})
}

// begin tells of a new attempt.
func (p *proc) begin(c driver.Claim, waits bool) int {
	return p.history.Begin(judge.Event{Proc: p.number, Key: c.Name, Units: c.Units, Capacity: c.Capacity, Waits: waits})
}

// attempt locks through package dibs, holds for a while, and lets go.
func (p *proc) attempt(c driver.Claim) {
	client := p.client
	if p.rng.IntN(4) == 0 {
		client = client.With(dibs.Settings{TTL: p.longTTL()})
	}
	locker := client.Mutex(c.Name)
	switch c.Mode() {
	case driver.Shared:
		locker = client.Reader(c.Name)
	case driver.Counted:
		locker = client.Semaphore(c.Name, c.Capacity, c.Units)
	}
	waits := p.rng.IntN(3) > 0
	budget := p.upTo(8)
	sound := p.sound()
	ctx, cancel := context.WithTimeout(p.life, budget)
	defer cancel()
	var (
		id    = p.begin(c, waits)
		lease *dibs.Lease
		err   error
	)
	if waits {
		lease, err = locker.Lock(ctx)
	} else {
		lease, err = locker.TryLock(ctx)
	}
	if err != nil {
		p.failed(id, c, waits, err)
		return
	}
	p.tally.add("granted", 1)
	p.won(id, c, lease.Token(), lease.Fence())
	id, c, sure := p.convert(lease, id, c)
	if !sure {
		_ = lease.Release(context.WithoutCancel(p.life))
		return
	}
	if !p.hold(lease, id, c) || p.life.Err() != nil && p.dead() {
		p.tell(judge.Lost, id, c, 0)
		p.tally.add("lost", 1)
		if p.dead() {
			return
		}
		_ = lease.Release(p.life)
		return
	}
	p.tell(judge.Letting, id, c, 0)
	ctx, cancel = context.WithTimeout(context.WithoutCancel(p.life), 2*p.ttl)
	if p.rng.IntN(4) == 0 {
		cancel() // a cancelled ctx is no obstacle
	}
	defer cancel()
	if err := lease.Release(ctx); err == nil && sound() {
		p.tell(judge.Released, id, c, 0)
		p.tally.add("released", 1)
	}
}

// failed tells of an attempt that was not granted.
func (p *proc) failed(id int, c driver.Claim, waits bool, err error) {
	if !waits && errors.Is(err, driver.ErrHeld) {
		p.tell(judge.Refused, id, c, 0)
		p.tally.add("refused", 1)
		return
	}
	p.tell(judge.Failed, id, c, 0)
	p.tally.add("not granted", 1)
}

// hold checks the lease again and again for a random while, and tells what that
// proves: at a check that says yes, all until the moment before it. It tells
// false if the lease was lost.
func (p *proc) hold(lease *dibs.Lease, id int, c driver.Claim) bool {
	ctx := lease.Context()
	long := p.upTo(1)
	if p.rng.IntN(3) == 0 {
		long = p.upTo(5) // renewals matter
	}
	for end := time.Now().Add(long); ; {
		before := p.history.Now()
		still, proved := p.holds(lease)
		if !still {
			return false
		}
		if proved {
			p.tell(judge.Proved, id, c, before)
		}
		if p.rng.IntN(20) == 0 {
			_ = lease.Validate(p.life) // whatever it finds, Check tells
			continue
		}
		left := time.Until(end)
		if left <= 0 || p.life.Err() != nil {
			return true
		}
		step := min(left, p.upTo(0.1)+time.Millisecond)
		if !sleep(ctx, step) {
			if p.Bubble { // there the end of the ctx is seen at once
				p.tell(judge.Proved, id, c, p.history.Now())
			}
			return false
		}
	}
}

// holds tells whether the holder of lease believes in it, and whether that proves
// anything. A session that its server ends frees at once, and its holder hears of it
// a moment later: there the server is asked.
func (p *proc) holds(lease *dibs.Lease) (still, proved bool) {
	if lease.Check() != nil {
		return false, false
	}
	if p.Facts.Survival != driver.BySession {
		return true, true
	}
	ctx, cancel := context.WithTimeout(p.life, p.ttl/3)
	defer cancel()
	return true, lease.Validate(ctx) == nil
}

// dead tells whether the client was killed.
func (p *proc) dead() bool { return p.life.Err() != nil && p.end.Err() == nil }

// kill ends the client as kill -9 of its process does: nothing that it says
// arrives any more.
func (p *proc) kill() {
	p.touched.Add(1)
	p.link.Set(BlackHole)
	p.die()
	p.Crash(p.store)
	if p.Facts.Survival == driver.BySession {
		p.link.Set(CutBefore) // the kernel closes its connections, which its server hears
	}
	if p.client != nil {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.client.Close(gone) // ends its goroutines; nothing gets out
	}
}

// close ends the client in peace.
func (p *proc) close(ctx context.Context) error {
	p.die()
	if p.client == nil {
		return nil
	}
	return p.client.Close(ctx)
}
