package redislock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// A lock that another program breaks is lost, and is no death.
func TestBrokenByAnother(t *testing.T) {
	r := servers.Redis(t)
	s := open(t, r.Addr(), "layout=plain")
	breaks := [][]any{{"DEL", "name"}}
	for range 200 { // some are on the very point of ending when we look
		breaks = append(breaks, []any{"SET", "name", "mine now", "PX", "1"})
	}
	for _, breaks := range breaks {
		m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
		do(t, r, breaks...)
		if p := drivertest.RenewOne(t.Context(), s, m); !errors.Is(p.Err, driver.ErrNotHeld) {
			t.Errorf("%q: renew: %v", breaks, p.Err)
		}
		var g driver.Grant
		soon(t, "the name is free", func() (ok bool) {
			n := drivertest.Mutex("name", time.Minute)
			var err error
			if g, err = s.Acquire(t.Context(), n); err == nil {
				drivertest.MustRelease(t, s, n)
			}
			return err == nil
		})
		if g.TookOver || g.Token <= m.Token {
			t.Errorf("%q: then %+v after token %d", breaks, g, m.Token)
		}
	}
}

// Another program's lock is listed for whoever asks for its name, with what is known
// of it, and spoils no list of others.
func TestAnothersLockIsListed(t *testing.T) {
	r := servers.Redis(t)
	s := open(t, r.Addr(), "layout=plain")
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("lock/ours", time.Minute))
	defer drivertest.MustRelease(t, s, m)
	for _, set := range [][]any{
		{"SET", "lock", "x", "PX", "600000"}, {"SET", "lock/", "for ever"}, {"HSET", "lock/o", "x", "y"}, {"HSET", "lock/ou", "x", "y"}, {"PEXPIRE", "lock/ou", "600000"},
	} {
		do(t, r, set...)
	}
	list := func(prefix string) (found []string) {
		for h, err := range s.(driver.Lister).List(t.Context(), prefix) {
			if err != nil {
				t.Errorf("list %q: %v", prefix, err)
			}
			if h.Foreign != (h.Name != m.Name) || h.Foreign && (h.Token != 0 || h.Age != 0) || h.Name == "lock" && h.Left < 9*time.Minute {
				t.Errorf("list %q: %+v", prefix, h)
			}
			found = append(found, h.Name)
		}
		return found
	}
	for prefix, want := range map[string][]string{
		"lock": {"lock", "lock/ours"}, "loc": {"lock/ours"}, "": {"lock/ours"}, "lock/": {"lock/", "lock/ours"},
		"lock/o": {"lock/o", "lock/ours"}, "lock/ou": {"lock/ou", "lock/ours"}, "lock/ours": {"lock/ours"}, "none": nil,
	} {
		if got := list(prefix); !slices.Equal(got, want) {
			t.Errorf("list %q: got %q, want %q", prefix, got, want)
		}
	}
	_, err := s.Acquire(t.Context(), drivertest.Mutex("lock", time.Minute))
	if want := `"lock" is held by a program that is not dibs`; !errors.Is(err, driver.ErrHeld) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// What will not end by itself, or is no lock at all, is reported and not waited
// for; a lock that another releases is had within a poll.
func TestWaitingForAnother(t *testing.T) {
	r := servers.Redis(t)
	client, err := dibs.Open(t.Context(), "redis://"+r.Addr()+"?layout=plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	for why, set := range map[string][]any{
		"time to live":      {"SET", "a", "for ever"},
		"another program u": {"HSET", "b", "x", "y"},
	} {
		do(t, r, set...)
		_, err := client.Mutex(set[1].(string)).Lock(t.Context())
		isRejected(t, err)
		if !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", set, err)
		}
	}

	// They are listed, if they are asked for by name, whether or not they end.
	do(t, r, "HSET", "d", "x", "y")
	do(t, r, "PEXPIRE", "d", "600000")
	s := openURL(t, "redis://"+r.Addr()+"?layout=plain")
	for name, why := range map[string]string{"a": "without a time to live", "b": "without a time to live", "d": "no string"} {
		all := listed(t, s, name)
		if len(all) != 1 || all[0].Name != name || !all[0].Foreign || !strings.Contains(all[0].Note, why) || name == "d" != (all[0].Left > 9*time.Minute) {
			t.Errorf("listed of %s: %+v", name, all)
		}
	}
	if all := listed(t, s, "e"); len(all) != 0 {
		t.Errorf("listed of what is not there: %+v", all)
	}
	do(t, r, "ACL", "SETUSER", "blind", "on", ">x", "~*", "&*", "+@all", "-get")
	if all := listed(t, openURL(t, "redis://blind:x@"+r.Addr()+"?layout=plain"), "d"); len(all) != 0 {
		t.Errorf("listed to one who may not read it: %+v", all)
	}

	do(t, r, "SET", "c", "for a while", "PX", "600000")
	time.AfterFunc(200*time.Millisecond, func() { r.Do("DEL", "c") })
	l, err := client.Mutex("c").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v := do(t, r, "GET", "c"); v == nil || v == "for a while" {
		t.Errorf("locked, and the key has %v", v)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if v := do(t, r, "GET", "c"); v != nil {
		t.Errorf("released, and the key has %v", v)
	}
}

// So it is where the lock is on one of several servers, or on most of them.
func TestAnothersLockIsListedOfSeveralServers(t *testing.T) {
	t.Parallel()
	quorum, cluster := servers.Redises(t, 3), servers.Cluster(t, 3)
	stores := map[string]driver.Store{
		"quorum":  newQuorum(t, addrsOf(quorum), "layout=plain").open(t),
		"cluster": openURL(t, "redis-cluster://"+strings.Join(cluster.Addrs(), ",")+"/?layout=plain"),
	}
	for _, r := range quorum[:2] {
		do(t, r, "SET", "lock", "x", "PX", "600000")
	}
	for _, addr := range cluster.Addrs() { // the others say that the key is elsewhere
		c, err := servers.DialRESP(addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Do("SET", "lock", "x", "PX", "600000")
		c.Close()
	}
	for name, s := range stores {
		var found []driver.Holder
		for h, err := range s.(driver.Lister).List(t.Context(), "lock") {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			found = append(found, h)
		}
		if len(found) != 1 || found[0].Name != "lock" || !found[0].Foreign || found[0].Age != 0 || found[0].Left < 9*time.Minute {
			t.Errorf("%s: listed: %+v", name, found)
		}
	}
}
