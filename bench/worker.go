package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// workerArg makes this program a worker: one process of a player. It takes orders
// from its standard input, a line of JSON each, and answers each with one.
const workerArg = "worker"

// An order tells a worker what to do next.
type order struct {
	Do     string // open, race, relay, lock, hold, spent or close
	Player string
	Where  string
	TTL    time.Duration
	Names  []string  // of a race: one a goroutine; else what to lock
	From   time.Time // of a race: what counts
	To     time.Time
}

// An answer is what came of an order.
type answer struct {
	Err        string
	Grants     [][]time.Time // of a race or a relay, by goroutine
	Releases   []time.Time   // of a relay
	CPU        time.Duration // of the process: in a race, or since its start
	Allocs     uint64        // in a race
	At         time.Time     // when the lock was granted
	Heap       int64         // what the locks held take
	Goroutines int           // and how many there are for them
}

// worker is a process that plays for whoever it is told to.
type worker struct {
	client client
	held   []lease
}

func work(in io.Reader, out io.Writer) {
	var w worker
	orders, answers := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			return // the program has ended
		}
		a, err := w.obey(context.Background(), o)
		if err != nil {
			a.Err = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return
		}
	}
}

func (w *worker) obey(ctx context.Context, o order) (a answer, err error) {
	switch o.Do {
	case "open":
		p, ok := playerNamed(o.Player)
		if !ok {
			return a, fmt.Errorf("no player is called %q", o.Player)
		}
		w.client, err = p.open(ctx, o.Where, o.TTL)
		return a, err
	case "race":
		return w.race(ctx, o)
	case "relay":
		return w.relay(ctx, o)
	case "lock":
		l, err := w.client.lock(ctx, o.Names[0])
		w.held = append(w.held, l)
		return answer{At: time.Now()}, err
	case "hold":
		return w.hold(ctx, o.Names)
	case "spent":
		return answer{CPU: spent()}, nil
	case "close":
		w.held = nil
		return a, w.client.Close()
	}
	return a, fmt.Errorf("unknown order %q", o.Do)
}

// drain is how long those that still wait at the end of a race have their turn.
const drain = 10 * time.Second

var errLeft = fmt.Errorf("it was not granted within %v of the race's end", drain)

// race locks and unlocks until o.To, and notes what was granted from o.From on.
func (w *worker) race(ctx context.Context, o order) (a answer, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer time.AfterFunc(time.Until(o.To.Add(drain)), func() { cancel(errLeft) }).Stop()
	a.Grants = make([][]time.Time, len(o.Names))
	errs := make([]error, len(o.Names))
	var racers sync.WaitGroup
	for i, name := range o.Names {
		racers.Go(func() { // ends at o.To
			for errs[i] == nil && time.Now().Before(o.To) {
				l, err := w.client.lock(ctx, name)
				if err == nil {
					if now := time.Now(); now.After(o.From) && now.Before(o.To) {
						a.Grants[i] = append(a.Grants[i], now)
					}
					err = l.Release(ctx)
				}
				errs[i] = err
			}
		})
	}
	time.Sleep(time.Until(o.From))
	from := used()
	time.Sleep(time.Until(o.To))
	to := used()
	racers.Wait()
	a.CPU, a.Allocs = to.cpu-from.cpu, to.allocs-from.allocs
	return a, errors.Join(errs...)
}

// hold locks all names, and goes on holding them.
func (w *worker) hold(ctx context.Context, names []string) (a answer, err error) {
	first, err := w.client.lock(ctx, "first") // what is there once
	if err != nil {
		return a, err
	}
	w.held = make([]lease, len(names)+1)
	w.held[len(names)] = first
	before, goroutines := heap(), runtime.NumGoroutine()
	const hands = 64
	var all sync.WaitGroup
	errs := make([]error, hands)
	for h := range hands {
		all.Go(func() { // ends with its share
			for i := h; i < len(names) && errs[h] == nil; i += hands {
				w.held[i], errs[h] = w.client.lock(ctx, names[i])
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return a, err
	}
	return answer{Heap: heap() - before, Goroutines: runtime.NumGoroutine() - goroutines}, nil
}

// heap is what is in use after everything unused was collected.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // finalizers and pools let go in the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// usage is what the process has used since its start.
type usage struct {
	cpu    time.Duration
	allocs uint64
}

func used() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{spent(), m.Mallocs}
}

// spent is the processor's time that the process has taken since its start.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
