package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// rightsOf is what a user of the store needs, as words, with its password.
func rightsOf(t *testing.T, rawURL string) []any {
	t.Helper()
	setup, err := driver.PlanSetup(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	var words []any
	for word := range strings.FieldsSeq(strings.ReplaceAll(setup.Rights("locker"), "PASSWORD", "secret")) {
		words = append(words, word)
	}
	return words
}

// TestRightsAreAllThatIsNeeded does everything as a user with the rights that are
// printed, and fails without any one of them.
func TestRightsAreAllThatIsNeeded(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	do(t, r, rightsOf(t, "redis://x/?prefix=locks")...)
	try := func() error {
		do(t, r, "SCRIPT", "FLUSH")
		at := "redis://locker:secret@" + r.Addr() + "/2?prefix=locks"
		return errors.Join(everything(t, at), everything(t, at+"&journal=on"))
	}
	if err := try(); err != nil {
		t.Fatal(err)
	}
	for _, word := range rightsOf(t, "redis://x/?prefix=locks") {
		command, ok := strings.CutPrefix(word.(string), "+")
		if !ok || command == "ping" || command == "mget" || command == "hsetnx" {
			continue // which ask whether an idle connection lives, and spare a busy server work
		}
		do(t, r, "ACL", "SETUSER", "locker", "-"+command)
		if err := try(); err == nil {
			t.Errorf("it works without %s", command)
		}
		do(t, r, "ACL", "SETUSER", "locker", "+"+command)
	}
	s := open(t, "locker:secret@"+r.Addr(), "prefix=other")
	_, err := s.Acquire(t.Context(), drivertest.Mutex("name", time.Minute))
	isRejected(t, err)
}

// everything makes two clients and does whatever a store can.
func everything(t *testing.T, rawURL string) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := driver.Open(ctx, rawURL)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := driver.Open(ctx, rawURL)
	if err != nil {
		return err
	}
	defer b.Close()
	found, err := a.(driver.Diagnoser).Diagnose(ctx)
	if err != nil {
		return err
	}
	for _, f := range found {
		if (f.Check == "server" || f.Check == "signals") && f.Level != driver.Fine {
			return errors.New(f.Text)
		}
	}
	name := drivertest.Mutex("name", time.Minute).ID // of its own: a failure may have left something
	for _, step := range []func(context.Context, driver.Store, driver.Store, string) error{locks, lines, operators, records} {
		if err := step(ctx, a, b, name); err != nil {
			return err
		}
	}
	return nil
}

func locks(ctx context.Context, a, _ driver.Store, name string) error {
	c := drivertest.Mutex(name, time.Minute)
	c.Keep = time.Millisecond
	g, err := a.Acquire(ctx, c)
	if err != nil {
		return err
	}
	c.Token = g.Token
	proofs, err := a.Renew(ctx, []driver.Claim{c})
	if err != nil || proofs[0].Err != nil {
		return errors.Join(err, proofs[0].Err)
	}
	if err := a.Release(ctx, c); err != nil {
		return err
	}
	gs, err := a.(driver.Batcher).AcquireAll(ctx, []driver.Claim{drivertest.Mutex(name+"1", time.Minute), drivertest.Mutex(name+"2", time.Minute)})
	if err == nil && len(gs) != 2 {
		err = fmt.Errorf("%d grants", len(gs))
	}
	return err
}

// lines has three waiters: the first is handed the name, the second leaves, the
// third dies.
func lines(ctx context.Context, a, b driver.Store, name string) error {
	name += "/line"
	c := drivertest.Mutex(name, time.Minute)
	g, err := a.Acquire(ctx, c)
	if err != nil {
		return err
	}
	c.Token = g.Token
	var waiters []driver.Claim
	for i := range 3 {
		w := drivertest.Mutex(name, time.Minute)
		w.Patience = time.Minute
		if i == 2 {
			w.Patience = time.Millisecond
		}
		if _, err := b.Acquire(ctx, w); !errors.Is(err, driver.ErrHeld) {
			return fmt.Errorf("a place: %w", err)
		}
		waiters = append(waiters, w)
	}
	signals, stop, err := b.(driver.Watcher).Watch(ctx, waiters[0])
	if err != nil {
		return err
	}
	defer stop()
	if _, err := b.Acquire(ctx, waiters[1]); !errors.Is(err, driver.ErrHeld) { // it asks again
		return fmt.Errorf("a place, again: %w", err)
	}
	proofs, err := b.Renew(ctx, waiters[:1]) // the last ask before the hand-over
	if err != nil || !errors.Is(proofs[0].Err, driver.ErrHeld) {
		return fmt.Errorf("a place is not proved: %w", errors.Join(err, proofs[0].Err))
	}
	if err := b.Release(ctx, waiters[1]); err != nil {
		return err
	}
	if err := a.Release(ctx, c); err != nil {
		return err
	}
	for {
		select {
		case s := <-signals:
			if s.Place == 0 {
				continue
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		break
	}
	g, err = b.Acquire(ctx, waiters[0])
	if err != nil {
		return err
	}
	waiters[0].Token = g.Token
	if err := b.Release(ctx, waiters[0]); err != nil {
		return err
	}
	return upgrade(ctx, a, name+"/upgrade")
}

// upgrade has one of two readers wait until it is alone.
func upgrade(ctx context.Context, a driver.Store, name string) error {
	one, two := drivertest.Mutex(name, time.Minute), drivertest.Mutex(name, time.Minute)
	one.Capacity, two.Capacity = driver.Unlimited, driver.Unlimited
	for _, c := range []driver.Claim{one, two} {
		if _, err := a.Acquire(ctx, c); err != nil {
			return err
		}
	}
	up := drivertest.Mutex(name, time.Minute)
	up.From, up.Patience = one.ID, time.Minute
	if _, err := a.Acquire(ctx, up); !errors.Is(err, driver.ErrHeld) {
		return fmt.Errorf("a place that grows: %w", err)
	}
	if err := a.Release(ctx, two); err != nil {
		return err
	}
	return a.Release(ctx, up)
}

func operators(ctx context.Context, a, _ driver.Store, name string) error {
	name += "/revoked"
	c := drivertest.Mutex(name, time.Minute)
	g, err := a.Acquire(ctx, c)
	if err != nil {
		return err
	}
	n := 0
	for _, err := range a.(driver.Lister).List(ctx, name) {
		if n++; err != nil {
			return err
		}
	}
	if err := a.(driver.Revoker).Revoke(ctx, driver.Revocation{Name: name, Token: g.Token, Now: true}); err != nil {
		return err
	}
	for _, err := range a.(driver.Journal).Events(ctx, name, 0) {
		if n++; err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	if n < 2 {
		return fmt.Errorf("%d claims and events", n)
	}
	return nil
}

func records(ctx context.Context, a, _ driver.Store, name string) error {
	s := a.(driver.Records)
	version, err := s.Put(ctx, driver.Record{Key: name, Value: []byte("v"), Retention: time.Hour})
	if err != nil {
		return err
	}
	if r, _, err := s.Get(ctx, name); err != nil || r.Version != version || r.Retention == 0 {
		return fmt.Errorf("got %+v: %w", r, err)
	}
	for _, err := range s.ListRecords(ctx, name) {
		if err != nil {
			return err
		}
	}
	return s.Delete(ctx, name, version)
}

// TestDocsHaveTheRights compares the pages with what is printed.
func TestDocsHaveTheRights(t *testing.T) {
	t.Parallel()
	setup, err := driver.PlanSetup("redis://x/")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"../docs/stores/redis.md", "../docs/production.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(setup.Rights("dibs"))
		if !slices.ContainsFunc(strings.Split(string(text), "\n\n"), func(part string) bool {
			return slices.Equal(strings.Fields(part), words)
		}) {
			t.Errorf("%s does not have: %s", page, strings.Join(words, " "))
		}
	}
}

// A pattern of an ACL has no blank, in quotes or not: the rights are words that
// redis-cli takes as they are, and are enough for such a prefix.
func TestRightsForAnOddPrefix(t *testing.T) {
	r := servers.Redis(t)
	const prefix = `two words' "x" *`
	at := "redis://" + r.Addr() + "/?prefix=" + url.QueryEscape(prefix)
	setup, err := driver.PlanSetup(at)
	if err != nil {
		t.Fatal(err)
	}
	var args []any
	for word := range strings.FieldsSeq(strings.ReplaceAll(setup.Rights("locker"), "PASSWORD", "secret")) {
		if strings.ContainsAny(word, `"'\`) {
			t.Errorf("redis-cli would read %s as something else", word)
		}
		args = append(args, word)
	}
	do(t, r, args...)
	works(t, strings.Replace(at, "redis://", "redis://locker:secret@", 1))
}
