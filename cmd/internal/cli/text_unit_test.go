package cli

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, key string
		match        bool
		prefix       string
	}{
		{"", "any/thing", true, ""},
		{"*", "", true, ""},
		{"a*", "a/b", true, "a"},
		{"a*", "ba", false, "a"},
		{"a?c", "aéc", true, "a"},
		{"a?c", "ac", false, "a"},
		{"[a-c]x", "bx", true, ""},
		{"[^a-c]x", "bx", false, ""},
		{"[!a-c]x", "dx", true, ""},
		{"[]]", "]", true, ""},
		{`[\d]`, "d", true, ""},
		{`[\d]`, "5", false, ""},
		{`a\*b`, "a*b", true, "a*b"},
		{`a\*b`, "axb", false, "a*b"},
		{"a.b", "axb", false, "a.b"},
		{"a+(b)", "a+(b)", true, "a+(b)"},
		{"x\n*", "x\ny", true, "x\n"},
	} {
		g, err := newGlob(test.pattern)
		if err != nil {
			t.Errorf("%q: %v", test.pattern, err)
			continue
		}
		if got := g.match.MatchString(test.key); got != test.match || g.prefix != test.prefix {
			t.Errorf("%q matches %q: %v with prefix %q, want %v with %q", test.pattern, test.key, got, g.prefix, test.match, test.prefix)
		}
	}
	for _, bad := range []string{"[", "[a", "[]", `a\`, "[b-a]"} {
		if _, err := newGlob(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzGlob(f *testing.F) {
	f.Add(`a*[b-c]?\*`, "a")
	f.Fuzz(func(t *testing.T, pattern, key string) {
		if g, err := newGlob(pattern); err == nil && g.match.MatchString(key) && !strings.HasPrefix(key, g.prefix) {
			t.Errorf("%q matches %q, which doesn't begin with %q", pattern, key, g.prefix)
		}
	})
}

func TestPrintableIsOneSafeLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain é 鍵": "plain é 鍵", "a\nb": `a\nb`, "\x1b[2J": `\x1b[2J`, "\xff": `\xff`, "\u202ex": `\u202ex`, `a\b"`: `a\b"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"5ms": "5ms", "1500ms": "1.5s", "30s": "30s", "192s": "3m12s", "1h": "1h", "90m": "1h30m", "3605s": "1h0m5s", "100h": "4d4h", "0s": "0s",
	} {
		d, _ := time.ParseDuration(in)
		if got := short(d); got != want {
			t.Errorf("short(%s) = %q, want %q", in, got, want)
		}
	}
}

func TestANoteFitsAndKeepsWhatMatters(t *testing.T) {
	t.Parallel()
	c := caption{reason: "moon", meta: []string{"a=b"}, argv: []string{"psql", "postgres://ann:a/b@hunter2@db/app", strings.Repeat("é", 2000)}}
	note := c.note()
	if len(note) > driver.MaxNote || !utf8.ValidString(note) || !strings.HasSuffix(note, "… [moon; a=b]") || strings.Contains(note, "hunter2") {
		t.Errorf("%d bytes: %s", len(note), note)
	}
	if !who.MatchString(note) {
		t.Errorf("no holder in %q", note)
	}
	if err := (caption{reason: strings.Repeat("x", maxExtras)}).check(); err == nil {
		t.Error("a reason that leaves no room is taken")
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"sqlite:///var/lib/dibs/locks.db":           "sqlite:///var/lib/dibs/locks.db",
		"mem://":                                    "mem://",
		"redis://u:secret@h:6379/0?db=1":            "redis://u@h:6379/0?db=1",
		"redis://h?password=secret&db=1":            "redis://h",
		"redis://h?sentinel_Password=secret&a=b":    "redis://h",
		"redis://u:sec%zzret@h":                     "redis://…@h",
		"redis://u:sec#ret@h:1/0?db=1":              "redis://…@h:1",
		"redis://u:1/ret@h:1/0?db=1":                "redis://…@h:1",
		"redis://h?password=a@b":                    "redis://…@…",
		"redis:u:secret@h":                          "(a URL that can't be parsed)",
		"u:secret@h:1":                              "(a URL that can't be parsed)",
		"sqlite:///srv/a@b/locks.db":                "sqlite:///srv/a@b/locks.db",
		"redis://secret@h/":                         "redis://h/",
		"rediss://:secret@h":                        "rediss://@h",
		"postgres://u@h/d?password=secret&schema=x": "postgres://u@h/d",
		"postgres://u@h/d?sslpassword=secret":       "postgres://u@h/d",
		"postgres://u@h/d?journal=on&schema=x":      "postgres://u@h/d?journal=on&schema=x",
	} {
		if got := driver.Redact(in); got != want {
			t.Errorf("driver.Redact(%q) = %q, want %q", in, got, want)
		}
	}
}

// Two URLs of one store are one; those of two are not.
func TestIdentity(t *testing.T) {
	t.Parallel()
	seen := make(map[string][]string)
	for _, same := range [][]string{
		{"redis://u:p@H/", "redis://h:6379/0?journal=off", "redis://h?db=0", "redis://:x@h:6379"},
		{"redis://h/1", "redis://h?db=1"},
		{"redis://h/?prefix=x"},
		{"redis://h/?layout=plain"},
		{"rediss://h/?ca=x&cert=y&key=z", "rediss://h"},
		{"postgres://ann:p@h/d?sslmode=disable", "postgresql://bob@h:5432/d?application_name=x&pooler=session&create=on"},
		{"postgres://ann@h", "postgres://ann@h/ann"},
		{"postgres://h/d?schema=x"},
		{"pgadvisory://h/d?key=raw"},
		{"pgadvisory://h/d", "pgadvisory://h/d?sessions=2"},
		{"pgadvisory://h/d?namespace=x"},
		{"redis://a:b@H/0?x=1&y=2", "redis://c@h/0?y=2&x=1"},
		{"sqlite:///x/locks.db", "sqlite:///x/../x/locks.db?journal=off&force=yes"},
	} {
		for _, url := range same {
			if got, want := identity(url), identity(same[0]); got != want {
				t.Errorf("%s: %s, want %s", url, got, want)
			}
			seen[identity(url)] = append(seen[identity(url)], same[0])
		}
	}
	for id, urls := range seen {
		if len(slices.Compact(urls)) > 1 {
			t.Errorf("%s stands for several stores: %q", id, urls)
		}
	}
}

// A holder is an outer run if its key, its process and its fence are; whoever
// differs in one of them is a stranger, and worth a wait.
func TestOnlyTheOuterRunIsADeadlock(t *testing.T) {
	t.Parallel()
	outer := []heldKey{{"k", "redis://a", os.Getppid(), 7}}
	holder := func(key, host string, pid int, fence uint64) keyStatus {
		k := freeKey(key)
		k.add(driver.Holder{Name: key, State: driver.Held, Units: 1, Capacity: 1, Fence: fence, Note: fmt.Sprintf("ann@%s (pid %d): true", host, pid)})
		return k
	}
	for _, test := range []struct {
		status   keyStatus
		deadlock bool
	}{
		{holder("k", hostName(), os.Getppid(), 7), true},
		{holder("k", hostName(), os.Getppid(), 8), false},
		{holder("k", hostName(), os.Getppid()+1, 7), false},
		{holder("k", "not-"+hostName()+".x", os.Getppid(), 7), false},
		{holder("other", hostName(), os.Getppid(), 7), false},
		{freeKey("k"), false},
	} {
		if err := nestedIn(outer, test.status); (err != nil) != test.deadlock {
			t.Errorf("%+v: %v", test.status, err)
		}
	}
}

func TestAMomentBeforeTodayHasItsDate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		time.Second:          "since 00:00:00 (1s)",
		2 * time.Second:      "since 2025-12-31 23:59:59 (2s)",
		365 * 24 * time.Hour: "since 2025-01-01 00:00:01 (365d0h)",
	} {
		if got := since(now, d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// Places in line have no trust, and so no margin.
func TestARenewalOfPlacesHasNoMargin(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	renewed := logHooks(logger(&out, true)).Renewed
	renewed(dibs.RenewInfo{Places: 1, Margin: math.MaxInt64})
	if strings.Contains(out.String(), "margin") || !strings.Contains(out.String(), "places=1") {
		t.Error(out.String())
	}
	renewed(dibs.RenewInfo{Leases: 1, Margin: 20 * time.Second})
	if !strings.Contains(out.String(), "margin=20s") {
		t.Error(out.String())
	}
}
