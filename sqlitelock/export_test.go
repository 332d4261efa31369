package sqlitelock

import (
	"testing"
	"time"
)

// Hooks for tests.

// WithClock makes opts use another clock, in the domain that is named.
func WithClock(opts Options, now func() time.Time, domain string) *Options {
	opts.clock = &clock{now: func() int64 { return now().UnixNano() }, domain: number(domain), wall: now}
	return &opts
}

// WithoutEvents makes opts poll.
func WithoutEvents(opts *Options) *Options {
	opts.noEvents = true
	return opts
}

// Crash ends s as kill -9 of its process does: its life file stays, and is let go.
func Crash(s *Store) {
	s.close.Do(func() { s.err = s.shut(false) })
}

// WithBell makes all clients that are opened with opts ring for one another in
// place of file events.
func WithBell(opts *Options) *Options {
	opts.bell = &bell{notices: make(map[int64]func())}
	return opts
}

// Rows counts the rows of a table.
func Rows(t testing.TB, s *Store, table string) int64 {
	t.Helper()
	n, err := ask(t.Context(), s.read, func(tx *tx) (int64, error) { return tx.v.c.askInt("SELECT count(*) FROM " + table) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Synced tells whether the last transaction of s was fsynced at its commit, by
// what SQLite says.
func Synced(t testing.TB, s *Store) bool {
	t.Helper()
	var mode int64
	var err error
	look := func(v *view) bool { // at the desk, before the next transaction
		mode, err = v.c.askInt("PRAGMA synchronous")
		return mode <= 1
	}
	if err := s.write.doLazily(t.Context(), look, func(*tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return mode > 1 // FULL
}
