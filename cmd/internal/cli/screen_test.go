//go:build unix

package cli_test

import (
	"bytes"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/creack/pty"
)

var escapes = regexp.MustCompile("\x1b\\[[0-9]*[A-Za-z]")

// On a terminal, watch draws the whole list anew, and Ctrl-C ends it.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	hold := command(t, "run", "nightly", "--", "cat")
	in, err := hold.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	watch := exec.CommandContext(t.Context(), hold.Path, "watch", "--interval", "50ms")
	watch.Env = append(hold.Env, "TERM=xterm")
	tty, err := pty.StartWithSize(watch, &pty.Winsize{Rows: 5, Cols: 60})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	see := func(what string) []byte {
		t.Helper()
		if err := tty.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		var seen []byte
		for buf := make([]byte, 4096); !bytes.Contains(seen, []byte(what)); {
			n, err := tty.Read(buf)
			if err != nil {
				t.Fatalf("%v; seen instead of %q: %q", err, what, seen)
			}
			seen = append(seen, buf[:n]...)
		}
		return seen
	}
	frame := see("nightly  held")
	if !bytes.HasPrefix(frame, []byte("\x1b[2J\x1b[H")) {
		t.Errorf("the screen is not cleared first: %q", frame)
	}
	for line := range bytes.SplitSeq(frame, []byte("\x1b[K\r\n")) {
		if n := len([]rune(escapes.ReplaceAllString(string(line), ""))); n > 60 {
			t.Errorf("a line has %d columns: %q", n, line)
		}
	}
	if err := in.Close(); err != nil { // the end of cat
		t.Fatal(err)
	}
	if err := hold.Wait(); err != nil {
		t.Fatal(err)
	}
	see("nothing is held")
	if _, err := tty.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, watch.Wait()); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}
