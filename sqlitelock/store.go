package sqlitelock

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

const (
	// handOver is how long a claim handed over lives until it is heard of.
	handOver = 2 * time.Second
	// timeStep is what TTLs are rounded up to.
	timeStep = time.Millisecond
	// memory is how long a death that no grant has told of is remembered.
	memory = time.Hour
	// maxEvents is how many events the journal keeps, and trimEvery how often it
	// is cut to that.
	maxEvents = 20_000
	trimEvery = 256
	// closeWait bounds Close while the disk hangs.
	closeWait = 5 * time.Second
)

var facts = driver.Facts{
	Driver:   "sqlite",
	Survival: driver.ByTTL,
	Modes:    driver.Exclusive | driver.Shared | driver.Counted,
	Fencing:  driver.AcrossRestart,
	Ordered:  true,
	HandOver: handOver,
	MinTTL:   100 * time.Millisecond,
	MaxTTL:   365 * 24 * time.Hour,
	Step:     timeStep,
	MaxBatch: 10_000,
}

// A Store is one client of a lock file. Two Stores, in one process or in two, are
// two clients: the death of the one says nothing about the other.
type Store struct {
	path  string
	opts  Options
	clock *clock
	file  *file
	life  *life
	write *desk
	read  *desk
	subs  *subs
	feeds *feeds
	look  *lookout

	stop  chan struct{} // closed by Close
	close sync.Once
	err   error // of Close
}

var (
	_ driver.Store    = (*Store)(nil)
	_ driver.Watcher  = (*Store)(nil)
	_ driver.Batcher  = (*Store)(nil)
	_ driver.LossFeed = (*Store)(nil)
	_ driver.Lister   = (*Store)(nil)
	_ driver.Revoker  = (*Store)(nil)
	_ driver.Journal  = (*Store)(nil)
	_ driver.Records  = (*Store)(nil)
)

// Facts tells what the store promises.
func (s *Store) Facts() driver.Facts { return facts }

// Path is the lock file's, absolute and without symbolic links.
func (s *Store) Path() string { return s.path }

// Acquire asks once for c.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c, err := c.Check(facts)
	if err != nil {
		return driver.Grant{}, err
	}
	if s.subs.asks(c.ID, s.clock.now()) {
		// A woken waiter reads first, so that the many whose turn it is not
		// leave the write lock alone.
		if refusal, err := s.peek(ctx, c); err != nil || refusal != nil {
			if err == nil {
				err = refusal
			}
			return driver.Grant{}, err
		}
	}
	return ask(ctx, s.write, func(t *tx) (driver.Grant, error) {
		if err := t.claim(); err != nil {
			return driver.Grant{}, err
		}
		n, err := t.load(c.Name)
		if err != nil {
			return driver.Grant{}, err
		}
		if err := n.judge(c, &t.step); err != nil {
			return driver.Grant{}, n.queue(c, &t.step, err)
		}
		return n.take(c, &t.step), nil
	})
}

// peek returns c's refusal if a read can tell it: c is in line, more than half of
// its patience is left, and a write would change nothing.
func (s *Store) peek(ctx context.Context, c driver.Claim) (*driver.HeldError, error) {
	return ask(ctx, s.read, func(t *tx) (*driver.HeldError, error) {
		n, err := t.load(c.Name)
		if err != nil {
			return nil, err
		}
		p := n.waiting(c.ID, &t.step)
		if p == nil || !p.repeats(c) || p.until-t.now <= int64(c.Patience/2) || !n.quiet(&t.step) {
			return nil, nil
		}
		refusal, _ := n.verdict(c, &t.step).(*driver.HeldError)
		return refusal, nil
	})
}

// AcquireAll asks once for all of cs: it grants all or none.
func (s *Store) AcquireAll(ctx context.Context, cs []driver.Claim) ([]driver.Grant, error) {
	cs = slices.Clone(cs)
	names := make(map[string]bool)
	for i, c := range cs {
		c, err := c.Check(facts)
		if err != nil {
			return nil, err
		}
		if names[c.Name] {
			return nil, driver.Rejectedf(c.Name, "the name is twice in one batch")
		}
		names[c.Name] = true
		c.Patience = 0
		cs[i] = c
	}
	return ask(ctx, s.write, func(t *tx) ([]driver.Grant, error) { return t.acquireAll(cs) })
}

func (t *tx) acquireAll(cs []driver.Claim) ([]driver.Grant, error) {
	if err := t.claim(); err != nil {
		return nil, err
	}
	for _, c := range cs {
		n, err := t.load(c.Name)
		if err != nil {
			return nil, err
		}
		if err := n.judge(c, &t.step); err != nil {
			return nil, err
		}
	}
	var gs []driver.Grant
	for _, c := range cs { // the names are distinct: no grant changes what was judged
		n, err := t.load(c.Name)
		if err != nil {
			return nil, err
		}
		gs = append(gs, n.take(c, &t.step))
	}
	return gs, nil
}

// Renew proves claims and refreshes places.
func (s *Store) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	if len(cs) > facts.MaxBatch {
		return nil, driver.Rejectedf("", "%d claims in one renewal; at most %d are allowed", len(cs), facts.MaxBatch)
	}
	cs = slices.Clone(cs)
	now := s.clock.now()
	for _, c := range cs {
		if c.Token == 0 {
			s.subs.asks(c.ID, now)
		}
	}
	return askLazily(ctx, s.write, lazyRenewal(cs), func(t *tx) ([]driver.Proof, error) {
		proofs := make([]driver.Proof, len(cs))
		for i, c := range cs {
			var err error
			if proofs[i], err = t.renew(c); err != nil {
				return nil, err
			}
		}
		return proofs, nil
	})
}

// renew proves one claim. The error is the transaction's.
func (t *tx) renew(c driver.Claim) (driver.Proof, error) {
	c, err := c.Check(facts)
	if err != nil {
		return driver.Proof{Err: err}, nil
	}
	// Most are held and stay so, which one statement tells: the state of ten
	// thousand names is then neither read nor kept.
	if held, err := t.prolong(c); err != nil || held {
		return driver.Proof{TTL: c.TTL}, err
	}
	n, err := t.load(c.Name)
	if err != nil {
		return driver.Proof{}, err
	}
	return n.renew(c, &t.step), nil
}

// prolong proves c in the file if that is all there is to do, and tells whether
// it was.
func (t *tx) prolong(c driver.Claim) (bool, error) {
	if c.Token == 0 || t.v.names[c.Name] != nil { // what is in memory may be newer than the file
		return false, nil
	}
	r, err := t.v.c.exec("prolong", c.Name, c.ID, int64(c.Token), t.now, later(t.now, c.TTL), int64(c.TTL), t.domain)
	if err != nil {
		t.err = err
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// Release gives back c, or its place in line.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	if err := driver.CheckName(c.Name); err != nil {
		return err
	}
	if c.ID == "" {
		return driver.Rejectedf(c.Name, "the claim has no ID")
	}
	return s.write.doLazily(ctx, s.lazyRelease(c.Name), func(t *tx) error {
		n, err := t.load(c.Name)
		if err != nil {
			return err
		}
		return n.release(c, &t.step)
	})
}

// Revoke takes the claim with r.Token away.
func (s *Store) Revoke(ctx context.Context, r driver.Revocation) error {
	if err := checkRevocation(r); err != nil {
		return err
	}
	return s.write.do(ctx, func(t *tx) error {
		n, err := t.load(r.Name)
		if err != nil {
			return err
		}
		return n.revoke(r, &t.step)
	})
}

// LifeFile returns the open file whose lock tells the other clients that this one
// is alive. A supervisor that lets its child inherit it (os/exec.Cmd.ExtraFiles)
// keeps the claims taken up until the last process that has it is gone, or until
// their TTL. It is not inherited by itself. It must be neither closed nor locked;
// it is nil, with no error, where the platform has no such locks.
func (s *Store) LifeFile() (*os.File, error) {
	if s.closed() {
		return nil, driver.ErrClosed
	}
	if err := s.makeLife(); err != nil {
		return nil, err
	}
	return s.life.handle(), nil
}

// Close frees the store's goroutines, files and connections. Claims that were not
// released end by their TTL, not at once: the life file is removed before it is
// let go, and a missing one proves nothing. Close waits for the transaction in
// progress, but not for ever if the disk hangs.
func (s *Store) Close() error {
	s.close.Do(func() { s.err = s.shut(true) })
	return s.err
}

// shut ends everything; orderly is false for what looks like a crash.
func (s *Store) shut(orderly bool) error {
	close(s.stop)
	s.feeds.close()
	s.subs.close()
	late := time.NewTimer(closeWait)
	defer late.Stop()
	for _, gone := range []chan struct{}{s.look.gone, s.write.gone, s.read.gone} {
		select {
		case <-gone:
		case <-late.C:
			return s.unknown(errHung)
		}
	}
	err := s.life.close(orderly)
	for _, d := range []*desk{s.write, s.read} {
		if e := d.view.c.close(); err == nil && e != nil {
			err = s.unknown(e)
		}
	}
	return err
}

func (s *Store) closed() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}
