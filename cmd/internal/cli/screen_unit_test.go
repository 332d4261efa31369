package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

// What does not fit is cut, and said to be; only the first frame clears.
func TestScreenHasRoomForItsLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &screen{w: &out, fd: -1} // 80 columns, 24 rows
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "%d %s\n", i, strings.Repeat("é", 100))
	}
	if err := s.show(text.String()); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSuffix(out.String(), "\x1b[J"), "\x1b[K\n")
	if got := len(rows) - 1; got != 23 {
		t.Errorf("%d rows, want 23", got)
	}
	if got, want := rows[22], "... and 18 lines more"; got != want {
		t.Errorf("the last row is %q, want %q", got, want)
	}
	if got := len([]rune(rows[1])); got != 80 || !strings.HasSuffix(rows[1], "é…") {
		t.Errorf("a row of %d columns: %q", got, rows[1])
	}
	out.Reset()
	if err := s.show("x\n"); err != nil || out.String() != "\x1b[Hx\x1b[K\n\x1b[J" {
		t.Errorf("the next frame is %q, %v", out.String(), err)
	}
}

// A journal that was cut says where it begins, if that matters.
func TestHistorySaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	p := place{url: "sqlite:///x.db"}
	for _, test := range []struct {
		name  string
		place place
		first driver.Event
		from  time.Time
		want  string
	}{
		{"whole", p, driver.Event{Seq: 1, At: begin}, time.Time{}, ""},
		{"cut", p, driver.Event{Seq: 7, At: begin}, time.Time{}, "the journal begins at"},
		{"cut after what was asked for", p, driver.Event{Seq: 7, At: begin}, begin.Add(-time.Second), "the journal begins at"},
		{"cut before what was asked for", p, driver.Event{Seq: 7, At: begin}, begin.Add(time.Second), ""},
		{"empty", p, driver.Event{}, time.Time{}, "is empty"},
		{"off", place{url: "sqlite:///x.db?journal=off"}, driver.Event{Seq: 1, At: begin}, time.Time{}, "journal=off"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			notes := gaps(test.place, &ledger{first: test.first}, test.from)
			got := strings.Join(notes, "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
