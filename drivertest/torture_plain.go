package drivertest

import (
	"context"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest/judge"
)

// plain acquires by the store's own methods, keeps the trust rule by hand, and
// now and then sleeps through its own end, as a process does that is paused.
func (p *proc) plain(c driver.Claim) {
	sound := p.sound()
	id := p.begin(c, false)
	asked := time.Now()
	ctx, cancel := context.WithTimeout(p.life, p.ttl/3)
	g, err := p.store.Acquire(ctx, c)
	cancel()
	if err != nil {
		p.failed(id, c, false, err)
		if !driver.Certain(err) {
			p.takeBack(c, asked)
		}
		return
	}
	p.tally.add("granted", 1)
	c.Token = g.Token
	until := asked.Add(g.TTL)
	if !time.Now().Before(until) {
		p.tell(judge.Failed, id, c, 0)
		p.takeBack(c, asked)
		return
	}
	p.history.Add(judge.Event{Kind: judge.Granted, Attempt: id, Proc: p.number, Key: c.Name, Token: g.Token, Fence: g.Fence, Until: p.history.Since(until)})
	for range p.rng.IntN(4) {
		if p.rng.IntN(8) == 0 {
			p.tally.add("pauses", 1)
			p.pause(p.ttl + p.upTo(1))
		} else {
			p.pause(p.upTo(0.5))
		}
		asked = time.Now()
		if p.life.Err() != nil || !asked.Before(until) {
			break
		}
		ctx, cancel := context.WithTimeout(p.life, p.ttl/3)
		proof := RenewOne(ctx, p.store, c)
		cancel()
		if proof.Err != nil && driver.Certain(proof.Err) {
			break
		}
		if again := asked.Add(proof.TTL); proof.Err == nil && again.After(until) && time.Now().Before(until) {
			until = again
			p.tell(judge.Proved, id, c, p.history.Since(until))
		}
	}
	if p.dead() {
		p.tell(judge.Lost, id, c, 0)
		return
	}
	p.tell(judge.Letting, id, c, 0)
	ctx, cancel = context.WithTimeout(context.WithoutCancel(p.life), p.ttl/3)
	err = p.store.Release(ctx, c)
	cancel()
	if err == nil && sound() {
		p.tell(judge.Released, id, c, 0)
		p.tally.add("released", 1)
	}
	if !driver.Certain(err) {
		p.takeBack(c, asked)
	}
}

// takeBack gives up what may be there until a TTL after the last ask.
func (p *proc) takeBack(c driver.Claim, asked time.Time) {
	c.Token = 0
	for {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.life), p.ttl/3)
		_ = p.store.Release(ctx, c)
		cancel()
		if !time.Now().Before(asked.Add(p.ttl)) || p.dead() {
			return
		}
		time.Sleep(p.ttl / 10)
	}
}
