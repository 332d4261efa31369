package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// On a terminal a wait says nothing before the store has answered: there would be
// nothing behind "dibs: ".
func TestAWaitWithoutAnAnswerSaysNothing(t *testing.T) {
	t.Parallel()
	person, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	defer tty.Close()
	w := newWatch(&runner{stderr: &lockedWriter{w: tty}, began: time.Now()})
	stop := w.start()
	time.Sleep(2*quietTime + quietTime/2) // real, as the terminal is
	stop()
	if _, err := tty.WriteString("end\n"); err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	for b := make([]byte, 64); !strings.Contains(seen.String(), "end"); {
		n, err := person.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(b[:n])
	}
	if seen.String() != "end\r\n" {
		t.Errorf("said %q", seen.String())
	}
}
