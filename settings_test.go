package dibs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/memlock"
)

// open returns a client of a fresh store in memory, closed with the test.
func open(t *testing.T, opts *dibs.Options) *dibs.Client {
	t.Helper()
	c, err := dibs.New(memlock.New(memlock.Options{}), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func TestBadSettingsFailInNew(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		set  dibs.Settings
		want string
	}{
		{"negative ttl", dibs.Settings{TTL: -time.Second}, "ttl -1s"},
		{"ttl off", dibs.Settings{TTL: dibs.Off}, "ttl: it cannot be off"},
		{"ttl below the store's", dibs.Settings{TTL: 400 * time.Microsecond}, "at least"},
		{"overflowing ttl", dibs.Settings{TTL: math.MaxInt64}, "at most"},
		{"negative patience", dibs.Settings{Patience: -2}, "patience -2ns: it must not be negative"},
		{"overflowing keep", dibs.Settings{Keep: math.MaxInt64}, "keep"},
		{"poll over a second", dibs.Settings{Poll: 2 * time.Second}, "poll 2s"},
		{"unknown order", dibs.Settings{Order: "lifo"}, `order "lifo"`},
		{"unknown store_down", dibs.Settings{StoreDown: "panic"}, `store_down "panic"`},
		{"note of another encoding", dibs.Settings{Note: "caf\xe9"}, "note: it is not valid UTF-8"},
		{"long note", dibs.Settings{Note: strings.Repeat("x", 1025)}, "note: 1025 bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			store := memlock.New(memlock.Options{})
			defer store.Close()
			_, err := dibs.New(store, &dibs.Options{Settings: row.set})
			if !errors.Is(err, dibs.ErrRejected) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("New: %v; want an ErrRejected that says %q", err, row.want)
			}
			c := open(t, nil)
			sibling := c.With(row.set)
			if err := sibling.Err(); !errors.Is(err, dibs.ErrRejected) {
				t.Errorf("With: Err is %v", err)
			}
			if _, err := sibling.Mutex("a").TryLock(t.Context()); !errors.Is(err, dibs.ErrRejected) {
				t.Errorf("TryLock of the sibling: %v", err)
			}
			if lease, err := c.Mutex("a").TryLock(t.Context()); err != nil {
				t.Errorf("the sibling spoiled its client: %v", err)
			} else if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	store := memlock.New(memlock.Options{})
	defer store.Close()
	_, err := dibs.New(store, &dibs.Options{Settings: dibs.Settings{TTL: -1 * time.Second, Order: "x", Poll: time.Hour}})
	for _, want := range []string{"ttl", "order", "poll"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: says nothing of %s", err, want)
		}
	}
}

func TestWithInheritsWhatIsZero(t *testing.T) {
	t.Parallel()
	c := open(t, &dibs.Options{Settings: dibs.Settings{TTL: 10 * time.Second, Keep: time.Minute, Note: "a"}})
	s := c.With(dibs.Settings{Patience: time.Second}).With(dibs.Settings{Keep: dibs.Off, Order: dibs.Barging}).Settings()
	want := dibs.Settings{
		TTL: 10 * time.Second, Patience: time.Second, CallTimeout: 10 * time.Second / 3, Poll: time.Second,
		Order: dibs.Barging, StoreDown: dibs.FailDown, Note: "a",
	}
	if s != want {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
}

func TestSettingsFromJSON(t *testing.T) {
	t.Parallel()
	var s dibs.Settings
	if err := json.Unmarshal([]byte(`{"ttl":"10s","keep":"0s","order":"barging","note":"x"}`), &s); err != nil {
		t.Fatal(err)
	}
	if want := (dibs.Settings{TTL: 10 * time.Second, Keep: dibs.Off, Order: dibs.Barging, Note: "x"}); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	for text, want := range map[string]string{
		`{"tll":"10s"}`: `unknown field "tll"`,
		`{"ttl":10}`:    `"ttl": want a string`,
		`{"ttl":"10"}`:  "missing unit",
		`[]`:            "cannot unmarshal",
	} {
		if err := json.Unmarshal([]byte(text), &dibs.Settings{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// Without a note a claim says who the process is, as far as can be known without
// asking anybody.
func TestDefaultNoteNamesTheUser(t *testing.T) {
	for want, env := range map[string][2]string{"ann": {"ann", "bob"}, "bob": {"", "bob"}, "": {"", ""}} {
		if want == "" {
			if want = fmt.Sprintf("uid %d", os.Getuid()); os.Getuid() == 0 {
				want = "root"
			}
		}
		t.Setenv("USER", env[0])
		t.Setenv("LOGNAME", env[1])
		c := open(t, nil)
		lease, err := c.Mutex("name").TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for h, err := range c.Holders(t.Context(), "name") {
			if err != nil || !strings.HasPrefix(h.Note, want+"@") {
				t.Errorf("%q: %v; want %s@...", h.Note, err, want)
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Who this process is may be told in any bytes, a note not.
func TestDefaultNoteIsText(t *testing.T) {
	t.Setenv("USER", "caf\xe9")
	c := open(t, nil)
	if note := c.Settings().Note; !strings.HasPrefix(note, "caf\uFFFD@") {
		t.Errorf("the note is %q", note)
	}
	l, err := c.Mutex("name").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
