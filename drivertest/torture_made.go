package drivertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest/judge"
)

// What is built from a lock, in a torture. Each is told to the judge as attempts
// on the names that it locks.

// made does something that is built from a lock.
func (p *proc) made() {
	switch p.rng.IntN(4) {
	case 0:
		p.lead()
	case 1:
		p.several()
	default:
		if p.records {
			p.once()
		}
	}
}

// won tells of an attempt that was granted.
func (p *proc) won(id int, c driver.Claim, token, fence uint64) {
	now := p.history.Now()
	p.history.Add(judge.Event{Kind: judge.Granted, At: now, Attempt: id, Proc: p.number, Key: c.Name, Token: token, Fence: fence, Until: now})
}

// stopped tells that a holder has stopped, by itself or because it lost.
func (p *proc) stopped(id int, c driver.Claim, kept bool) {
	if !kept || p.dead() {
		p.tell(judge.Lost, id, c, 0)
		p.tally.add("lost", 1)
		return
	}
	p.tell(judge.Letting, id, c, 0)
}

// lead campaigns for a while, and leads for a while each time it wins.
func (p *proc) lead() {
	c := Mutex(p.names[p.rng.IntN(len(p.names))], p.ttl)
	e := p.client.Election(c.Name)
	ctx, cancel := context.WithTimeout(p.life, p.upTo(6))
	defer cancel()
	id := p.begin(c, false) // of the campaign that comes next
	down := make(chan struct{})
	close(down)
	err := e.Lead(ctx, func(ctx context.Context) error {
		lease, ok := dibs.FromContext(ctx)
		if !ok {
			p.t.Error("a leader has no lease")
			return nil
		}
		p.tally.add("led", 1)
		p.won(id, c, lease.Token(), lease.Fence())
		kept := p.hold(lease, id, c)
		if _, leads := e.Leading(); leads && !kept {
			p.t.Error("a leader that lost says that it leads")
		}
		p.stopped(id, c, kept)
		id = p.begin(c, false)
		if p.rng.IntN(2) == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		gone := make(chan struct{})
		go func() { // ends with the reign
			defer close(gone)
			_ = e.StepDown(p.life)
		}()
		<-ctx.Done()
		down = gone
		return nil
	})
	<-down
	p.failed(id, c, true, err)
}

// several locks two names at once.
func (p *proc) several() {
	if len(p.names) < 2 {
		return
	}
	i := p.rng.IntN(len(p.names))
	j := (i + 1 + p.rng.IntN(len(p.names)-1)) % len(p.names)
	cs := []driver.Claim{Mutex(p.names[i], p.ttl), Mutex(p.names[j], p.ttl)}
	all := p.client.All(p.client.Mutex(cs[0].Name), p.client.Mutex(cs[1].Name))
	lock := all.TryLock
	if p.rng.IntN(2) == 0 {
		lock = all.Lock
	}
	ctx, cancel := context.WithTimeout(p.life, p.upTo(8))
	defer cancel()
	var ids []int
	for _, c := range cs { // it holds the one while it waits for the other
		ids = append(ids, p.history.Begin(judge.Event{Proc: p.number, Key: c.Name, Units: 1, Capacity: 1, Holds: true}))
	}
	lease, err := lock(ctx)
	if err != nil {
		for k, id := range ids {
			p.failed(id, cs[k], true, err) // of the one in the way alone it is known that it was refused
		}
		return
	}
	p.tally.add("several", 1)
	fences := lease.Fences()
	for k, id := range ids {
		p.won(id, cs[k], fences[cs[k].Name], fences[cs[k].Name])
	}
	kept := true
	for end := time.Now().Add(p.upTo(3)); kept && time.Now().Before(end) && p.life.Err() == nil; {
		before, proved := p.history.Now(), false
		if kept, proved = p.holds(lease); kept {
			if proved {
				p.tell(judge.Proved, ids[0], cs[0], before)
				p.tell(judge.Proved, ids[1], cs[1], before)
			}
			sleep(lease.Context(), p.upTo(0.1)+time.Millisecond)
		}
	}
	for k, id := range ids {
		p.stopped(id, cs[k], kept)
	}
	if !p.dead() {
		_ = lease.Release(context.WithoutCancel(p.life))
	}
}

// onceKeys is how many things are to be done once, for each name of a torture:
// enough that some are new to the end.
const onceKeys = 200

// once does one of many things, which is to be done once.
func (p *proc) once() {
	key := fmt.Sprintf("deed/%d", p.rng.IntN(onceKeys*p.Names))
	c := Mutex("once/"+key, p.ttl)
	o := p.client.Once(key, 1000*time.Hour)
	do := o.Call
	if p.rng.IntN(3) == 0 {
		do = o.TryCall
	}
	ctx, cancel := context.WithTimeout(p.life, p.upTo(8))
	defer cancel()
	id, began := p.begin(c, false), false
	sorry := errors.New("changed its mind")
	result, ran, err := do(ctx, func(ctx context.Context, run dibs.Run) ([]byte, error) {
		began = true
		lease, _ := dibs.FromContext(ctx)
		p.tally.add("runs", 1)
		if run.Again {
			p.tally.add("runs again", 1)
		}
		p.won(id, c, lease.Token(), lease.Fence())
		kept := p.hold(lease, id, c)
		p.stopped(id, c, kept)
		if !kept || p.rng.IntN(4) == 0 {
			return nil, sorry
		}
		return []byte(key), nil
	})
	if !began {
		p.failed(id, c, true, err)
	}
	switch {
	case ran != began:
		p.t.Errorf("%s: it ran: %t, and said so: %t", key, began, ran)
	case err == nil && string(result) != key:
		p.t.Errorf("%s: done, with the result %q", key, result)
	case err == nil:
		p.history.Add(judge.Event{Kind: judge.Done, Key: c.Name})
		p.tally.add("done", 1)
	}
}

// convert makes a reader a writer, or a writer a reader, and returns the attempt
// that l then belongs to, and its claim. It is not sure if it may be either: then
// its holder may do what a reader may, and no more.
func (p *proc) convert(l *dibs.Lease, id int, c driver.Claim) (_ int, _ driver.Claim, sure bool) {
	if p.Facts.Waived(21) != "" || p.Facts.Modes&driver.Shared == 0 || c.Mode() == driver.Counted || p.rng.IntN(3) > 0 {
		return id, c, true
	}
	to, convert := Mutex(c.Name, p.ttl), l.Upgrade
	if c.Mode() == driver.Exclusive {
		to, convert = Reader(c.Name, p.ttl), l.Downgrade
	}
	before := p.history.Now()
	ctx, cancel := context.WithTimeout(p.life, p.upTo(1))
	defer cancel()
	next := p.begin(to, false)
	err := convert(ctx)
	switch {
	case err == nil:
		p.tally.add("converted", 1)
		p.history.Add(judge.Event{Kind: judge.Letting, At: before, Attempt: id, Proc: p.number, Key: c.Name})
		p.won(next, to, l.Token(), l.Fence())
		return next, to, true
	case to.Mode() == driver.Exclusive:
		p.failed(next, to, false, err)
		return id, c, true
	}
	p.tally.add("unsure", 1)
	p.failed(next, to, true, err)
	p.history.Add(judge.Event{Kind: judge.Lost, At: before, Attempt: id, Proc: p.number, Key: c.Name})
	return id, c, false
}
