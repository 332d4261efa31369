package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/guard"
	"github.com/dibslock/dibs/driver"
)

// A session is a runner with its store.
type session struct {
	*runner
	in     *inbox
	store  driver.Store
	client *dibs.Client // closes the store
	watch  *watch

	failing bool // the lock of the last command was lost, or in doubt
	asked   bool // a signal asked the last command to end
}

// within opens the store, does work, and leaves nothing open.
func (r *runner) within(work func(s *session) error) error {
	in := listen()
	defer in.stop()
	reaper := guard.NewReaper()
	defer reaper.Stop()
	defer r.followParent()()
	var err error
	if r.place, err = choose(r.store); err != nil {
		return err
	}
	r.place.waits = r.waits && r.wait.Duration == 0
	if strings.HasPrefix(r.place.url, "mem:") {
		return failf(exitConfig, "can't use the store %s: it is this process's memory, and excludes nobody else; nothing was run\n%s", r.place, r.place.correction())
	}
	if err := r.nested(); err != nil {
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
	store, err := r.openStore(in)
	if err != nil {
		return r.without(err)
	}
	if err := r.suits(store.Facts()); err != nil {
		_ = store.Close() // nothing was asked of it
		return err
	}
	s := &session{runner: r, in: in, store: store, watch: newWatch(r)}
	s.client, err = r.place.client(store, &dibs.Options{
		Settings: r.settings(store),
		Hooks:    dibs.JoinHooks(s.watch.hooks(), logHooks(r.log)),
		Logger:   r.log,
	})
	if err != nil {
		return err
	}
	defer closeClient(s.client, r.log)
	if err := s.nestedIn(); err != nil {
		return err
	}
	s.watch.look = func(ctx context.Context, key string) (keyStatus, error) {
		return oneStatus(ctx, r.place, s.client, key)
	}
	return work(s)
}

// nested refuses keys that an outer run holds.
func (r *runner) nested() error {
	r.outer = outerKeys(os.Getenv(keysVar))
	for _, name := range r.names {
		if err := nested(r.outer, name, identity(r.place.url)); err != nil {
			return err
		}
	}
	return nil
}

// nestedIn refuses keys that an outer run holds by another spelling of the store. It
// asks the store only if an outer run holds a key of that name; what is not answered
// is no deadlock.
func (s *session) nestedIn() error {
	for _, name := range s.names {
		if !disguised(s.outer, name) {
			continue
		}
		ctx, done := s.heeding(context.Background(), s.in)
		ctx, cancel := context.WithTimeout(ctx, listTime)
		status, err := oneStatus(ctx, s.place, s.client, name)
		cancel()
		if sig := done(); sig != nil {
			return (&signalError{sig}).failure(s.key)
		}
		if err != nil {
			s.log.Info("can't tell whether an outer run holds it", "key", name, "err", err)
		} else if err := nestedIn(s.outer, status); err != nil {
			return err
		}
	}
	return nil
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
	if r.wait.Duration > 0 || r.patient {
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
