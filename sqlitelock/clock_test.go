package sqlitelock_test

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/sqlitelock"
)

// boot is a client after a boot: its clock began at random, its wall clock is off.
func boot(t *testing.T, path, id string, shift time.Duration) *sqlitelock.Store {
	opts := sqlitelock.WithClock(sqlitelock.Options{}, func() time.Time { return time.Now().Add(shift) }, id)
	return openStore(t, path, sqlitelock.WithBell(opts))
}

func TestAClaimFromBeforeARebootIsRestampedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, shift := range []time.Duration{-20 * 365 * 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
			path := filepath.Join(t.TempDir(), "locks.db")
			old := boot(t, path, "old", 0)
			c := mutex("n", "1")
			c.TTL = 10 * time.Second
			c.Delay = 2 * time.Second
			_, err := old.Acquire(t.Context(), c)
			must(t, err)
			must(t, old.Close())
			time.Sleep(5 * time.Second)

			// Nobody lives long: each asks once, and closes.
			begin := time.Now()
			ask := func() (driver.Grant, error) {
				s := boot(t, path, "new", shift)
				defer s.Close()
				return s.Acquire(t.Context(), mutex("n", "2"))
			}
			for range 11 { // its full TTL, and Delay
				var held *driver.HeldError
				if _, err := ask(); !errors.As(err, &held) {
					t.Fatalf("after %v: %v", time.Since(begin), err)
				}
				if want := 12*time.Second - time.Since(begin); held.RetryAfter != want {
					t.Fatalf("retry after %v, want %v", held.RetryAfter, want)
				}
				time.Sleep(time.Second)
			}
			time.Sleep(time.Second)
			if g, err := ask(); err != nil || !g.TookOver || g.Token < 2 {
				t.Fatalf("after %v: %+v, %v", time.Since(begin), g, err)
			}
		}
	})
}

func TestTheRecordClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "locks.db")
		s := boot(t, path, "0", 0)
		version, err := s.Put(t.Context(), driver.Record{Key: "k", Value: []byte{}, Retention: time.Hour})
		must(t, err)
		_, before, err := s.Get(t.Context(), "k")
		must(t, err)
		must(t, s.Close())
		for i, shift := range []time.Duration{-time.Hour, time.Minute, -time.Minute} { // of the wall clock
			s := boot(t, path, string(rune('1'+i)), shift)
			r, now, err := s.Get(t.Context(), "k")
			must(t, err)
			if now.Before(before) || r.Version != version {
				t.Fatalf("boot %d: %v after %v, %+v", i, now, before, r)
			}
			_, err = s.Put(t.Context(), driver.Record{Key: "other", Retention: time.Hour})
			if i == 0 {
				must(t, err)
			}
			time.Sleep(time.Second)
			_, later, err := s.Get(t.Context(), "k")
			must(t, err)
			if later.Sub(now) != time.Second {
				t.Fatalf("a second later it is %v later", later.Sub(now))
			}
			before = now
			must(t, s.Close())
		}
	})
}

func TestTheDeadAreSweptAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "locks.db")
		dead, s := boot(t, path, "b", 0), boot(t, path, "b", 0)
		for _, name := range []string{"a", "b", "c"} {
			c := mutex(name, "1")
			c.TTL = time.Hour
			_, err := dead.Acquire(t.Context(), c)
			must(t, err)
		}
		_, err := s.Put(t.Context(), driver.Record{Key: "k", Retention: time.Minute})
		must(t, err)
		sqlitelock.Crash(dead)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if files, _ := filepath.Glob(path + "-life/*"); len(files) != 0 {
			t.Errorf("left: %v", files)
		}
		if n := sqlitelock.Rows(t, s, "records"); n != 0 {
			t.Errorf("%d records are left", n)
		}
		if n := sqlitelock.Rows(t, s, "claims"); n != 3 {
			t.Errorf("%d rows, want 3 that tell of a death", n)
		}
		if g, err := s.Acquire(t.Context(), mutex("a", "2")); err != nil || !g.TookOver {
			t.Errorf("%+v, %v", g, err)
		}
		must(t, s.Release(t.Context(), mutex("a", "2")))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := sqlitelock.Rows(t, s, "claims"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}
