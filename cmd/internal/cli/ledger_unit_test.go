package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

func TestLedger(t *testing.T) {
	t.Parallel()
	const (
		granted  = driver.EventGranted
		handed   = driver.EventHanded
		released = driver.EventReleased
		expired  = driver.EventExpired
		revoked  = driver.EventRevoked
	)
	type event struct {
		kind  driver.EventKind
		token uint64
		now   bool
	}
	// Event i is at second i. want has a word for each hold: token, outcome,
	// seconds held, and whether it was revoked.
	for _, test := range []struct {
		name   string
		events []event
		listed []uint64
		want   string
	}{
		{"released", []event{{granted, 1, false}, {released, 1, false}}, nil, "1 released 1"},
		{"expired", []event{{granted, 1, false}, {expired, 1, false}}, nil, "1 expired 1"},
		{"handed over", []event{{granted, 1, false}, {released, 1, false}, {handed, 2, false}}, []uint64{2}, "1 released 1, 2 held 9"},
		{"revoked, then let go of", []event{{granted, 1, false}, {revoked, 1, false}, {released, 1, false}}, nil, "1 revoked 2 R"},
		{"revoked, then expired", []event{{granted, 1, false}, {revoked, 1, false}, {expired, 1, false}}, nil, "1 revoked 2 R"},
		{"revoked, and held still", []event{{granted, 1, false}, {revoked, 1, false}}, []uint64{1}, "1 held 9 R"},
		{"freed at once", []event{{granted, 1, false}, {revoked, 1, true}, {released, 1, false}}, nil, "1 revoked 1 R"},
		{"kept, then freed", []event{{granted, 1, false}, {released, 1, false}, {revoked, 1, true}}, nil, "1 released 1 R"},
		{"side by side", []event{{granted, 1, false}, {granted, 2, false}, {released, 1, false}, {released, 2, false}}, nil, "1 released 2, 2 released 2"},
		{"its beginning was cut", []event{{released, 1, false}}, nil, "1 released ?"},
		{"its end is not in it", []event{{granted, 1, false}, {granted, 2, false}}, []uint64{2}, "1 unknown ?, 2 held 9"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			for i, e := range test.events {
				l.add(driver.Event{
					Seq: uint64(i + 1), At: time.Unix(int64(i), 0), Kind: e.kind, Name: "k", Token: e.token,
					Fence: e.token, Units: 1, Capacity: 1, Now: e.now,
				})
			}
			for _, token := range test.listed {
				l.present(dibs.Holder{Name: "k", Token: token, Age: 9 * time.Second})
			}
			var got []string
			for _, h := range l.holds {
				s := fmt.Sprintf("%s %s ?", h.Token, h.Outcome)
				if h.Held != nil {
					s = fmt.Sprintf("%s %s %d", h.Token, h.Outcome, *h.Held/1000)
				}
				if h.Revoked != nil {
					s += " R"
				}
				got = append(got, s)
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRevocationIsSplit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ reason, want string }{
		{"ann@db1 (pid 812): host is gone", "revoked by ann@db1 (pid 812): host is gone"},
		{"ann@db1 (pid 812): ", "revoked by ann@db1 (pid 812)"},
		{"by hand", "revoked: by hand"},
		{"", "revoked"},
	} {
		r := newRevocation(driver.Event{Reason: test.reason})
		if got := r.String(); got != test.want {
			t.Errorf("%q: got %q, want %q", test.reason, got, test.want)
		}
	}
}

// The journal is on unless the URL says otherwise; no URL of a store without one is
// touched.
func TestJournaled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ url, want, off string }{
		{"sqlite:///x.db", "sqlite:///x.db?journal=on", "sqlite:///x.db?journal=off"},
		{"sqlite:x.db", "sqlite:x.db?journal=on", "sqlite:x.db?journal=off"},
		{"sqlite:///x.db?force=yes", "sqlite:///x.db?force=yes&journal=on", "sqlite:///x.db?force=yes&journal=off"},
		{"sqlite:///x.db?journal=off", "sqlite:///x.db?journal=off", "sqlite:///x.db?journal=off"},
		{"sqlite:///x.db?journal=maybe", "sqlite:///x.db?journal=maybe", "sqlite:///x.db?journal=maybe"},
		{"sqlite:///x.db?journal=on&journal=off", "sqlite:///x.db?journal=on&journal=off", "sqlite:///x.db?journal=on&journal=off"},
		{"mem://", "mem://", "mem://"},
		{"redis://h:1/0", "redis://h:1/0?journal=on", "redis://h:1/0?journal=off"},
		{"rediss://u:p@h/?journal=off", "rediss://u:p@h/?journal=off", "rediss://u:p@h/?journal=off"},
		{"redis://h/?layout=plain", "redis://h/?layout=plain", "redis://h/?layout=plain"},
		{"postgres://h/d?schema=x", "postgres://h/d?schema=x&journal=on", "postgres://h/d?journal=off&schema=x"},
		{"pgadvisory://h/d", "pgadvisory://h/d", "pgadvisory://h/d"},
		{"%", "%", "%"},
	} {
		if got := journaled(test.url); got != test.want {
			t.Errorf("journaled(%q) = %q, want %q", test.url, got, test.want)
		}
		if got := withJournal(test.url, "off"); got != test.off {
			t.Errorf("withJournal(%q, off) = %q, want %q", test.url, got, test.off)
		}
	}
}
