package drivertest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/memlock"
)

// linked is a client of a memory behind a link, and another that sees the truth.
func linked(t *testing.T) (*drivertest.LocalLink, driver.Store, driver.Store) {
	first := memlock.New(memlock.Options{})
	second := first.Client()
	t.Cleanup(func() { first.Close(); second.Close() })
	link := drivertest.NewLink()
	return link, drivertest.Wrap(first, link.Around), second
}

func TestLink(t *testing.T) {
	t.Parallel()
	const patience = time.Second
	for _, row := range []struct {
		fault   drivertest.Fault
		hangs   bool // until its ctx ends
		applied bool
		landed  bool // by Land
	}{
		{drivertest.Pass, false, true, true},
		{drivertest.BlackHole, true, false, false},
		{drivertest.DropReplies, true, true, true},
		{drivertest.CutBefore, false, false, false},
		{drivertest.CutAfter, false, true, true},
		{drivertest.Late, true, false, true},
	} {
		t.Run(row.fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				link, store, truth := linked(t)
				link.Set(row.fault)
				c := drivertest.Mutex("name", time.Minute)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				start := time.Now()
				g, err := store.Acquire(ctx, c)
				if took := time.Since(start); (took == patience) != row.hangs {
					t.Errorf("took %v", took)
				}
				if unknown := row.fault != drivertest.Pass; unknown != (err != nil) || unknown && driver.Certain(err) || unknown && g.Token != 0 {
					t.Errorf("answered %+v, %v", g, err)
				}
				held := func() bool { return errors.Is(drivertest.RenewOne(t.Context(), truth, c).Err, nil) }
				if held() != row.applied {
					t.Errorf("applied: %t, want %t", !row.applied, row.applied)
				}
				link.Set(drivertest.Pass)
				link.Land()
				if held() != row.landed {
					t.Errorf("landed: %t, want %t", !row.landed, row.landed)
				}
				want := 1
				if row.fault == drivertest.Pass {
					want = 0
				}
				if n := link.Injected()[row.fault]; n != want {
					t.Errorf("%d faults were counted, want %d", n, want)
				}
			})
		})
	}
}

func TestLinkDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		link, store, truth := linked(t)
		link.Delay(2*time.Second, 3*time.Second)
		c := drivertest.Mutex("name", time.Minute)
		start := time.Now()
		go func() {
			time.Sleep(2*time.Second + 1)
			if p := drivertest.RenewOne(context.Background(), truth, c); p.Err != nil {
				t.Errorf("after the request's delay: %v", p.Err)
			}
		}()
		if _, err := store.Acquire(t.Context(), c); err != nil || time.Since(start) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := store.Release(ctx, c); err == nil || driver.Certain(err) {
			t.Errorf("a call that is cut short: %v", err)
		}
		if p := drivertest.RenewOne(t.Context(), truth, c); p.Err != nil {
			t.Errorf("before the request arrives: %v", p.Err)
		}
		time.Sleep(time.Second + 1)
		if p := drivertest.RenewOne(t.Context(), truth, c); !errors.Is(p.Err, driver.ErrNotHeld) {
			t.Errorf("after it arrived: %v", p.Err)
		}
	})
}

func TestLinkLosesSignals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		link, store, truth := linked(t)
		held, _ := drivertest.MustAcquire(t, truth, drivertest.Mutex("name", time.Minute))
		wait := func() (<-chan driver.Signal, driver.Claim, func()) {
			c := drivertest.Mutex("name", time.Minute)
			c.Patience = time.Minute
			signals, stop, err := store.(driver.Watcher).Watch(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Acquire(t.Context(), c); !errors.Is(err, driver.ErrHeld) {
				t.Fatal(err)
			}
			return signals, c, stop
		}
		signals, c, stop := wait()
		drivertest.MustRelease(t, truth, held)
		if s := <-signals; s.Grant == nil {
			t.Errorf("over a whole link: %+v, want a grant", s)
		}
		stop()
		stop() // more than once

		signals, _, stop = wait()
		link.Set(drivertest.BlackHole)
		drivertest.MustRelease(t, truth, c)
		synctest.Wait()
		select {
		case s := <-signals:
			t.Errorf("over a broken link: %+v", s)
		default:
		}
		link.Set(drivertest.Pass)
		if s := <-signals; s != (driver.Signal{}) {
			t.Errorf("over a mended link: %+v, want a zero signal", s)
		}
		stop()
	})
}
