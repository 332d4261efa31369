package sqlitelock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/sqlitelock"
)

func TestCloseLeavesNoDescriptor(t *testing.T) {
	path := dbPath(t)
	open := func() []string {
		var files []string
		links, err := filepath.Glob("/proc/self/fd/*")
		must(t, err)
		for _, l := range links {
			if to, err := os.Readlink(l); err == nil && (strings.HasPrefix(to, path) || strings.Contains(to, "inotify")) {
				files = append(files, to)
			}
		}
		return files
	}
	before := len(open())
	for range 20 {
		s := openStore(t, path, nil)
		c := mutex("n", "1")
		_, stop, err := s.Watch(t.Context(), c)
		must(t, err)
		_, err = s.Acquire(t.Context(), c)
		must(t, err)
		if len(open()) == before {
			t.Fatal("the test does not see the store's files")
		}
		stop()
		must(t, s.Release(t.Context(), c))
		must(t, s.Close())
		if _, err := s.Acquire(t.Context(), c); !errors.Is(err, driver.ErrClosed) {
			t.Fatalf("after Close: %v", err)
		}
	}
	if left := open(); len(left) != before {
		t.Errorf("left open: %v", left)
	}
}

func TestWithoutFileEventsWaitersAreToldByPolling(t *testing.T) {
	t.Parallel()
	path := filepath.Join(fastDir(t), "locks.db")
	a := openStore(t, path, nil)
	b := openStore(t, path, sqlitelock.WithoutEvents(new(sqlitelock.Options)))
	_, err := a.Acquire(t.Context(), mutex("n", "1"))
	must(t, err)
	c := mutex("n", "2")
	c.Patience = time.Minute
	signals, stop, err := b.Watch(t.Context(), c)
	must(t, err)
	defer stop()
	if _, err := b.Acquire(t.Context(), c); !errors.Is(err, driver.ErrHeld) {
		t.Fatal(err)
	}
	must(t, a.Release(t.Context(), mutex("n", "1")))
	select {
	case sig := <-signals:
		if sig.Grant == nil {
			t.Errorf("%+v", sig)
		}
	case <-time.After(5 * time.Second): // half of the TTL
		t.Error("not told before the end of the TTL")
	}
}

func TestTheJournalIsBounded(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(fastDir(t), "locks.db"), &sqlitelock.Options{Journal: true})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 200 { // 25,600 events
				if err := pair(s, fmt.Sprintf("n%d", i), benchID); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	n := sqlitelock.Rows(t, s, "events")
	if n < 20_000 || n > 20_300 {
		t.Errorf("%d events", n)
	}
	var last uint64
	for e, err := range s.Events(t.Context(), "n63", 0) {
		must(t, err)
		if e.Seq <= last || e.Name != "n63" {
			t.Fatalf("%+v after %d", e, last)
		}
		last = e.Seq
	}
	if last == 0 {
		t.Error("no events")
	}
}

func TestALifeDirectoryThatIsNoneIsRejected(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	must(t, os.WriteFile(path+"-life", nil, 0o600))
	s := openStore(t, path, nil)
	if _, err := s.Acquire(t.Context(), mutex("n", "1")); !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("got %v", err)
	}
}
