package drivertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

var mutexLaws = []law{
	{number: 1, name: "EveryPrimitiveExcludes", test: l1Primitives},
}

// A primitive is something that is built from a lock, as a mutex: do runs fn while
// nobody else's runs under name; try does so if nobody else's runs now.
type primitive struct {
	name    string
	do, try func(ctx context.Context, c *dibs.Client, name string, fn func(context.Context) error) error
	refused bool // the store lacks what it needs
}

// byLocker is a primitive that is a Locker.
func byLocker(name string, modes driver.Mode, s *Stage, locker func(c *dibs.Client, name string) *dibs.Locker) primitive {
	return primitive{
		name: name,
		do: func(ctx context.Context, c *dibs.Client, name string, fn func(context.Context) error) error {
			return locker(c, name).Do(ctx, fn)
		},
		try: func(ctx context.Context, c *dibs.Client, name string, fn func(context.Context) error) error {
			return locker(c, name).TryDo(ctx, fn)
		},
		refused: !s.has(modes),
	}
}

// primitives lists all of them. Limit is no lock.
func primitives(t testing.TB, s *Stage) []primitive {
	_, keeps := records(t, s.Open(t))
	again := errors.New("not done: the next one runs too")
	once := func(call func(*dibs.Once, context.Context, func(context.Context) error) (bool, error)) func(context.Context, *dibs.Client, string, func(context.Context) error) error {
		return func(ctx context.Context, c *dibs.Client, name string, fn func(context.Context) error) error {
			_, err := call(c.Once(name, time.Hour), ctx, func(ctx context.Context) error { return errors.Join(fn(ctx), again) })
			if err != nil && err.Error() == again.Error() {
				return nil
			}
			return err
		}
	}
	return []primitive{
		byLocker("Mutex", driver.Exclusive, s, (*dibs.Client).Mutex),
		byLocker("Writer", driver.Exclusive, s, (*dibs.Client).Writer),
		byLocker("Semaphore of one", driver.Exclusive, s, func(c *dibs.Client, name string) *dibs.Locker { return c.Semaphore(name, 1, 1) }),
		byLocker("Semaphore, more than half", driver.Counted, s, func(c *dibs.Client, name string) *dibs.Locker { return c.Semaphore(name, 5, 3) }),
		byLocker("All", driver.Exclusive, s, func(c *dibs.Client, name string) *dibs.Locker { return c.All(c.Mutex(name+"/2"), c.Mutex(name+"/1")) }),
		byLocker("Path", driver.Exclusive|driver.Shared, s, func(c *dibs.Client, name string) *dibs.Locker { return c.Path(name + "/leaf") }),
		{
			name: "Election",
			do: func(ctx context.Context, c *dibs.Client, name string, fn func(context.Context) error) error {
				return c.Election(name).Lead(ctx, fn)
			},
		},
		{
			name: "Once", refused: !keeps,
			do:  once((*dibs.Once).Do),
			try: once((*dibs.Once).TryDo),
		},
	}
}

func l1Primitives(t *testing.T, s *Stage) {
	var ps parts
	for _, p := range primitives(t, s) {
		ps = append(ps, part{p.name, func(t *testing.T, s *Stage) {
			if p.refused {
				r := newRig(t, s, dibs.Settings{})
				isUnsupported(t, "do", p.do(t.Context(), r.client, fresh(), nothing))
				if n := len(r.calls.Calls(OpAcquire)) + len(r.calls.Calls(OpAcquireAll)); n != 0 {
					t.Errorf("%d claims were asked for", n)
				}
				return
			}
			p.excludes(t, s)
			p.outlivesItsHolder(t, s)
		}})
	}
	ps.run(t, s)
}

// excludes has several clients run under one name.
func (p primitive) excludes(t *testing.T, s *Stage) {
	var (
		inside, runs atomic.Int32
		wg           sync.WaitGroup
		name         = fresh()
	)
	for range 3 {
		r := newRig(t, s, dibs.Settings{})
		for range 3 {
			wg.Go(func() { // ends with its run
				err := p.do(t.Context(), r.client, name, func(ctx context.Context) error {
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d run at once", n)
					}
					time.Sleep(5 * time.Millisecond)
					runs.Add(1)
					inside.Add(-1)
					return nil
				})
				if err != nil {
					t.Errorf("do: %v", err)
				}
			})
		}
	}
	wg.Wait()
	if n := runs.Load(); n != 9 {
		t.Errorf("%d of 9 ran", n)
	}
}

// outlivesItsHolder cuts one off while it runs: another gets in, and only after
// that one's trust has ended.
func (p primitive) outlivesItsHolder(t *testing.T, s *Stage) {
	if s.Facts.Survival != driver.ByTTL {
		return
	}
	name, begun, ended := fresh(), make(chan *dibs.Lease, 1), make(chan struct{})
	life, cancel := context.WithCancel(t.Context())
	a, b := newRig(t, s, dibs.Settings{}), newRig(t, s, dibs.Settings{})
	a.left = true
	go func() { // ends with life
		defer close(ended)
		_ = p.do(life, a.client, name, func(ctx context.Context) error {
			l, _ := dibs.FromContext(ctx)
			begun <- l
			<-life.Done() // whatever it is told
			return life.Err()
		})
	}()
	t.Cleanup(func() { <-ended })
	t.Cleanup(cancel)
	lease := <-begun
	if p.try != nil {
		if err := p.try(t.Context(), b.client, name, nothing); !errors.Is(err, dibs.ErrHeld) {
			t.Errorf("try while it runs: %v, want ErrHeld", err)
		}
	}
	a.link.Set(CutBefore)
	ctx, stop := context.WithTimeout(t.Context(), 3*a.ttl+s.Grace()+10*time.Second)
	defer stop()
	err := p.do(ctx, b.client, name, func(context.Context) error {
		if lease.Check() == nil {
			t.Error("another runs, and the one before it believes that it may")
		}
		return nil
	})
	if err != nil {
		t.Errorf("after a holder that was cut off: %v", err)
	}
}
