package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/guard"
	"github.com/dibslock/dibs/driver"
)

var errWaitOver = errors.New("the wait is over")

// run takes the lock, runs the command, and gives the lock back.
func (r *runner) run() error {
	in := listen()
	defer in.stop()
	reaper := guard.NewReaper()
	defer reaper.Stop()
	defer r.followParent()()
	var err error
	if r.place, err = choose(r.store); err != nil {
		return err
	}
	if strings.HasPrefix(r.place.url, "mem:") {
		return failf(exitConfig, "can't use the store %s: it is this process's memory, and excludes nobody else; nothing was run\n%s", r.place, r.place.correction())
	}
	r.outer = outerKeys(os.Getenv(keysVar))
	if err := nested(r.outer, r.key, identity(r.place.url)); err != nil {
		return err
	}
	if r.verbose {
		say(r.stderr, "store: %s", r.place)
		if l := guard.Limits(); l != "" {
			say(r.stderr, "on this system %s", l)
		}
	}
	if err := r.scatter(in); err != nil {
		return err
	}
	r.began = time.Now()
	ctx, done := r.waiting(in)
	defer done()
	store, err := r.openStore(ctx)
	if err != nil {
		return r.without(err)
	}
	if err := r.suits(store.Facts()); err != nil {
		_ = store.Close() // nothing was asked of it
		return err
	}
	watch := newWatch(r)
	client, err := r.place.client(store, &dibs.Options{
		Settings: r.settings(store),
		Hooks:    dibs.JoinHooks(watch.hooks(), logHooks(r.log)),
		Logger:   r.log,
	})
	if err != nil {
		return err
	}
	defer closeClient(client, r.log)

	watch.look = func(ctx context.Context) (keyStatus, error) { return oneStatus(ctx, r.place, client, r.key) }
	lease, err := r.acquire(ctx, client, watch)
	r.result.Waited = time.Since(r.began).Milliseconds()
	if err != nil {
		return r.without(err)
	}
	if sig := done(); sig != nil {
		// It came after the wait, or in the moment of the grant.
		r.giveBack(lease, giveBackTime)
		return (&signalError{sig}).failure(r.key)
	}
	return r.hold(in, store, lease, watch)
}

// deathDelay keeps a key closed after the death of its dibs, on a store that sees
// a death before the TTL is over: perhaps before the kernel has ended the command
// with it. Where a guardian keeps the life file too, that goes only for the death
// of both at once.
const (
	deathDelay   = 500 * time.Millisecond
	guardedDelay = 100 * time.Millisecond
)

func (r *runner) settings(store driver.Store) dibs.Settings {
	s := dibs.Settings{TTL: r.ttl.Duration, Keep: r.atLeastFor.Duration, Note: r.caption.note()}
	if r.wait.Duration > 0 {
		s.StoreDown = dibs.WaitDown
	}
	if _, ok := store.(living); ok && store.Facts().Waived(49) == "" {
		s.Delay = deathDelay
		if guard.Guards {
			s.Delay = guardedDelay
		}
	}
	return s
}

// without is how a run ends that gets no lock: what a store that is down means is
// for --if-store-down to say.
func (r *runner) without(err error) error {
	var f *failure
	if !errors.As(err, &f) || f.code != exitStoreDown || r.ifStoreDown.value != "skip" {
		return err
	}
	r.result.Outcome = outcomeSkipped
	skip := &failure{code: r.conflict.value}
	if !r.quiet {
		skip.text = "skipped: " + f.text
	}
	return skip
}

// waiting returns a context for all that comes before the command: it ends with
// a signal, and with the wait. done ends it, waits until nobody reads signals any
// more, and returns the signal that was read, if any.
func (r *runner) waiting(in *inbox) (ctx context.Context, done func() os.Signal) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := func() {}
	if r.wait.Duration > 0 {
		ctx, stop = context.WithDeadlineCause(ctx, r.began.Add(r.wait.Duration), errWaitOver)
	}
	over := make(chan struct{})
	var got os.Signal
	go func() { // ends with ctx, which done ends
		defer close(over)
		select {
		case got = <-in.signals:
			cancel(&signalError{got})
		case <-r.parent:
			got = syscall.SIGTERM
			cancel(&signalError{got})
		case <-ctx.Done():
		}
	}()
	return ctx, func() os.Signal {
		cancel(nil)
		stop()
		<-over
		return got
	}
}

// openStore opens the store; with --wait=DUR it goes on trying.
func (r *runner) openStore(ctx context.Context) (driver.Store, error) {
	for pause, said := 50*time.Millisecond, false; ; pause = min(2*pause, time.Second) {
		store, err := r.place.open(ctx)
		var f *failure
		if err == nil {
			return store, nil
		}
		if sig := signalOf(ctx); sig != nil {
			return nil, sig.failure(r.key)
		}
		if !errors.As(err, &f) || f.code != exitStoreDown || r.wait.Duration == 0 || ctx.Err() != nil {
			return nil, err
		}
		if !said && !r.quiet {
			say(r.stderr, "waiting for the store for up to %s: %v", short(r.wait.Duration), err)
			said = true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if sig := signalOf(ctx); sig != nil {
				return nil, sig.failure(r.key)
			}
			return nil, err
		}
	}
}

// acquire takes the lock, at once or after a wait.
func (r *runner) acquire(ctx context.Context, client *dibs.Client, watch *watch) (*dibs.Lease, error) {
	locker := client.Semaphore(r.key, r.slots.value, 1)
	if r.shared {
		locker = client.Reader(r.key)
	}
	if !r.wait.wanted {
		lease, err := locker.TryLock(ctx)
		return lease, r.refused(ctx, err, watch)
	}
	stop := watch.start()
	lease, err := locker.Lock(ctx)
	for err == nil && ctx.Err() == nil && r.trust(lease) != nil {
		// It was handed over, and lapsed before it could be renewed: nothing was
		// started under it, so there is nothing lost. Back into the line.
		r.log.Info("the hand-over lapsed, waiting again", "key", r.key)
		_ = lease.Release(ctx)
		lease, err = locker.Lock(ctx)
	}
	stop()
	return lease, r.refused(ctx, err, watch)
}

// refused turns the error of an acquire into a failure.
func (r *runner) refused(ctx context.Context, err error, watch *watch) error {
	if err == nil {
		return nil
	}
	if sig := signalOf(ctx); sig != nil {
		return sig.failure(r.key)
	}
	var held *dibs.HeldError
	if errors.As(err, &held) {
		held = watch.aged(time.Now(), held)
		r.result.Outcome = outcomeSkipped
		if held.Holder != nil {
			holder := newClaimStatus(*held.Holder)
			r.result.Holder = &holder
		}
		return &failure{code: r.conflict.value, text: r.skipped(held, watch)}
	}
	var over *dibs.WaitError
	if errors.As(err, &over) {
		if over.Last == nil {
			err = fmt.Errorf("no answer within %s", short(r.wait.Duration))
		} else {
			err = fmt.Errorf("waited for %s; at last: %w", short(over.Waited), over.Last)
		}
	}
	return r.place.cannot("lock", r.key, err)
}

// skipped says who is in the way, and what can be done about it.
func (r *runner) skipped(held *dibs.HeldError, watch *watch) string {
	if r.quiet {
		return ""
	}
	lead, advice := "skipped: ", "Wait with --wait"
	if r.wait.wanted {
		lead = fmt.Sprintf("skipped after %s: ", short(time.Since(r.began)))
		advice = "Wait longer with --wait=DUR"
	}
	now := time.Now()
	why := inTheWay(now, held)
	if r.slots.value > 1 {
		why = cmp.Or(full(now, watch.status(context.Background()), r.slots.value), why)
	}
	return refusal(lead+why, held, advice+"; inspect with: dibs show "+shellWord(r.key))
}
