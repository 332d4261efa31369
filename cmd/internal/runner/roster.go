package runner

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dibslock/dibs/cmd/internal/book"
)

// beatPause is how often an instance says that it is there.
const beatPause = time.Second

// silence is after how long without an answer of the store an instance is not
// ready any more.
const silence = 5 * time.Second

// A roster is what this instance tells the others about itself: one record, which
// it alone writes, each second and when something changes. Changes that come while
// it is written go together.
type roster struct {
	r    *Runner
	wake chan struct{} // capacity 1

	mu     sync.Mutex // guards what follows
	me     book.Instance
	active map[string]book.Active
	want   uint64        // counts changes
	sent   uint64        // the change up to which the store knows
	news   chan struct{} // closed when sent grows
	heard  time.Time     // when the store answered last
	joined time.Time
	err    error // its last answer
}

func newRoster(r *Runner) *roster {
	host, _ := os.Hostname()
	return &roster{
		r: r, wake: make(chan struct{}, 1), news: make(chan struct{}),
		active: make(map[string]book.Active),
		me:     book.Instance{ID: r.id, Host: host, Pid: os.Getpid(), Version: r.opts.Version, Listen: r.opts.Listen, Started: time.Now().UTC()},
	}
}

// add tells the others of a run, and returns when the store knows. The run stays
// also after an error: remove it.
func (o *roster) add(ctx context.Context, a book.Active) error {
	o.change(a)
	return o.sync(ctx)
}

func (o *roster) change(a book.Active) {
	key := a.Run
	if a.Tick != nil {
		key = tickKey(a.Run)
	}
	o.mu.Lock()
	o.active[key] = a
	o.mu.Unlock()
	o.touch()
}

// tickKey is what a tick goes by, beside the run that it becomes.
func tickKey(run string) string { return "tick " + run }

func (o *roster) remove(key string) {
	o.mu.Lock()
	delete(o.active, key)
	o.mu.Unlock()
	o.touch()
}

// touch says that something has changed.
func (o *roster) touch() {
	o.mu.Lock()
	o.want++
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default: // it is awake
	}
}

// sync returns when the store knows of all changes so far.
func (o *roster) sync(ctx context.Context) error {
	o.mu.Lock()
	want := o.want
	for o.sent < want {
		news := o.news
		o.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("telling the other instances: %w", cmp.Or(o.trouble(), context.Cause(ctx)))
		case <-o.r.ctx.Done():
			return context.Cause(o.r.ctx)
		}
		o.mu.Lock()
	}
	o.mu.Unlock()
	return nil
}

func (o *roster) trouble() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// health tells whether the store answers.
func (o *roster) health() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if since := time.Since(o.heard); since > silence {
		if o.err != nil {
			return fmt.Errorf("the store doesn't answer since %v: %w", since.Round(time.Second), o.err)
		}
		return fmt.Errorf("the store doesn't answer since %v", since.Round(time.Second))
	}
	return nil
}

// run beats until ctx ends.
func (o *roster) run(ctx context.Context) {
	tick := time.NewTicker(beatPause)
	defer tick.Stop()
	var told time.Time // of trouble; zero: there is none
	for {
		select {
		case <-o.wake:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		call, cancel := context.WithTimeout(ctx, settleTime)
		err := o.beat(call)
		switch {
		case err == nil && !told.IsZero():
			o.r.log.Info("the store answers again")
			told = time.Time{}
		case err != nil && ctx.Err() == nil && time.Since(told) >= silence:
			o.r.log.Warn("the store doesn't answer", "err", err)
			told = time.Now()
		}
		if err != nil && ctx.Err() == nil {
			select {
			case <-time.After(100 * time.Millisecond):
				o.touch()
			case <-ctx.Done():
			}
		}
		cancel()
	}
}

// beat tells the others once.
func (o *roster) beat(ctx context.Context) error {
	me, want := o.snapshot()
	began := o.r.now()
	at, err := o.r.book.Beat(ctx, me)
	if err == nil && o.stale() {
		err = o.r.book.Join(ctx, me.ID) // somebody may have given this instance up
	}
	took := o.r.now().Sub(began)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
	if err != nil {
		return err
	}
	if f := o.r.opts.Observer.Skew; f != nil && !at.IsZero() {
		f(began.Add(took / 2).Sub(at))
	}
	o.heard, o.sent = time.Now(), want
	close(o.news)
	o.news = make(chan struct{})
	return nil
}

// stale tells that the others may have given this instance up, and notes that it
// joins again.
func (o *roster) stale() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if now.Sub(o.heard) < 2*beatPause && now.Sub(o.joined) < 10*beatPause {
		return false
	}
	o.joined = now
	return true
}

func (o *roster) snapshot() (me book.Instance, want uint64) {
	queues := o.r.queues()
	slices.Sort(queues)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.me.Beat++
	me = o.me
	me.Queues = queues
	me.Active = make([]book.Active, 0, len(o.active))
	for _, a := range o.active {
		me.Active = append(me.Active, a)
	}
	slices.SortFunc(me.Active, func(a, b book.Active) int { return cmp.Compare(a.Run, b.Run) })
	return me, o.want
}

// empty tells that nothing is left for others to find.
func (o *roster) empty() bool {
	me, _ := o.snapshot()
	return len(me.Active) == 0 && len(me.Queues) == 0
}

// leave says that this instance goes, and that what it has is the others'.
func (o *roster) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.me.Left = true
}
