package guard_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dibslock/dibs/cmd/internal/guard"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestCodeIsHowItEnded(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"exit 0": "0", "exit 1": "1", "exit 75": "75", "exit 255": "255",
		"kill -HUP $$": "129", "kill -KILL $$": "137", "kill -TERM $$": "143", "kill -35 $$": "163",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			crewOf(t, 0, script).ended(want + " false false")
		})
	}
}

func TestGoneWaitsForTheGroupAndForNoOther(t *testing.T) {
	t.Parallel()
	c := crewOf(t, 0, `
		setsid sh -c ': >$DIR/daemon; sleep 999; :' &
		until [ -e $DIR/daemon ]; do sleep 0.02; done
		(until [ -e $DIR/go ]; do sleep 0.02; done; : >$DIR/done) &
		exit 4`)
	c.written("daemon")
	await(t, "the command has ended", func() bool { return !running(c.pid) })
	if _, err := os.Stat(c.dir + "/done"); err == nil {
		t.Fatal("the background ended by itself")
	}
	if err := os.WriteFile(c.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.ended("4 false false")
	c.written("done")
	if len(c.mates()) == 0 {
		t.Error("the daemon was ended too")
	}
}

func TestWhatCannotBeExecuted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(path, []byte("\x7fELF garbage"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := muster(t, []string{"0s", path, "garbage"})
	if got := c.line(); got != "error: exec format error" {
		t.Errorf("%q", got)
	}
}

// Arguments, environment and descriptors reach the command as they are, and none
// of the guardian's own.
func TestTheGuardianIsInvisible(t *testing.T) {
	t.Parallel()
	extra, err := os.CreateTemp(t.TempDir(), "extra")
	if err != nil {
		t.Fatal(err)
	}
	defer extra.Close()
	const script = `tr '\0' '\n' </proc/$$/cmdline | tail -n +5 >$DIR/argv; env >$DIR/env; for f in /proc/$$/fd/*; do readlink $f; done >$DIR/fds; echo extra >&3`
	args := []string{"0s", "/bin/sh", "sh", "-c", script, "-", "", "--", "a b", "\xff\xfe", "é"}
	c := musterWith(t, extra, args, "ODD=\xff\xfe", "EMPTY=")
	c.line()
	c.ended("0 false false")

	argv, _ := os.ReadFile(c.dir + "/argv")
	if want := "\n--\na b\n\xff\xfe\né\n"; string(argv) != want {
		t.Errorf("arguments %q, want %q", argv, want)
	}
	env, _ := os.ReadFile(c.dir + "/env")
	lines := strings.Split(string(env), "\n")
	if !slices.Contains(lines, "ODD=\xff\xfe") || !slices.Contains(lines, "EMPTY=") || strings.Contains(string(env), "DIBS_GUARDIAN") {
		t.Errorf("environment %q", lines)
	}
	if text, _ := os.ReadFile(extra.Name()); string(text) != "extra\n" {
		t.Errorf("descriptor 3 did not reach the command: %q", text)
	}
	fds, _ := os.ReadFile(c.dir + "/fds")
	if strings.Contains(string(fds), "socket:") {
		t.Errorf("the command has a socket: %s", fds)
	}
}

// Whoever starts another process at the wrong moment has given it the guardian's end
// of the line, which then has no end.
func TestCloseWaitsForNobodyElse(t *testing.T) {
	t.Parallel()
	gate, open, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p, err := guard.Start(guard.Spec{Path: "/bin/sh", Argv: []string{"sh", "-c", "read line"}, Files: [3]*os.File{gate, null, null}})
	if err != nil {
		t.Fatal(err)
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.Guardian()))
	if err != nil {
		t.Fatal(err)
	}
	_, fds, _ := bytes.Cut(env, []byte("="))
	var conn int
	if _, err := fmt.Sscanf(string(fds), "%d,", &conn); err != nil {
		t.Fatalf("%q: %v", env, err)
	}
	guardian, err := unix.PidfdOpen(p.Guardian(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(guardian)
	end, err := unix.PidfdGetfd(guardian, conn, 0)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		open.Close()
		<-p.Gone()
		p.Close()
		t.Skipf("no process may have another's descriptor here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(end)
	open.Close()
	<-p.Gone()
	p.Close()
	if running(p.Guardian()) {
		t.Error("the guardian is still there")
	}
}
