package guard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// unruly starts all that tries to stay: in the background, ignoring TERM, in
// sessions of their own, orphaned twice, with closed pipes. Each says when it runs.
const unruly = `
	sleep 999 & : >$DIR/a
	sh -c 'trap "" TERM HUP; : >$DIR/b; while :; do sleep 0.1; done' &
	setsid sh -c ': >$DIR/c; sleep 999; :' &
	setsid sh -c 'trap "" TERM; (setsid sh -c "trap : TERM; : >\$DIR/d; while :; do sleep 0.1; done" &) & wait' &
	sh -c 'exec <&- >&- 2>&-; trap "" TERM; : >$DIR/e; while :; do sleep 0.1; done' &
	(sh -c '(sleep 999 & : >$DIR/f)' &)
	trap "" TERM
	: >$DIR/g
	while :; do sleep 0.1; done`

var unrulyFiles = []string{"a", "b", "c", "d", "e", "f", "g"}

func TestAKilledDibsLeavesNothing(t *testing.T) {
	t.Parallel()
	c := crewOf(t, 0, unruly)
	c.written(unrulyFiles...)
	kill(t, c.cmd.Process.Pid, unix.SIGKILL)
	c.none()
}

func TestAKilledGroupOfDibsLeavesNothing(t *testing.T) {
	t.Parallel()
	c := crewOf(t, 0, unruly)
	c.written(unrulyFiles...)
	kill(t, -c.cmd.Process.Pid, unix.SIGKILL)
	c.none()
}

func TestAKilledGuardianLeavesNothing(t *testing.T) {
	t.Parallel()
	c := crewOf(t, 0, unruly)
	c.written(unrulyFiles...)
	kill(t, c.guardian, unix.SIGKILL)
	c.ended("0 false true")
	c.none()
}

func TestBothKilledAtOnceTakeTheCommandWithThem(t *testing.T) {
	t.Parallel()
	c := crewOf(t, 0, "while :; do sleep 0.1; done")
	// Stopped first, so that neither can act for the other.
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		kill(t, c.guardian, sig)
		kill(t, c.cmd.Process.Pid, sig)
	}
	await(t, "the command has ended", func() bool { return !running(c.pid) })
}

func TestAStoppedDibsLeavesNothingPastTheLimit(t *testing.T) {
	t.Parallel()
	limit := 3 * time.Second
	c := crewOf(t, limit, unruly)
	kill(t, c.cmd.Process.Pid, unix.SIGSTOP)
	for !c.allOf(unrulyFiles...) { // before the limit, on a machine that is fast enough
		if limit *= 2; limit > patience {
			t.Fatal("not all of it runs")
		}
		c = crewOf(t, limit, unruly)
		kill(t, c.cmd.Process.Pid, unix.SIGSTOP)
	}
	await(t, "nothing is left", func() bool { return len(c.mates()) == 0 })
	if !running(c.guardian) {
		t.Error("the guardian did not wait for dibs")
	}
	kill(t, c.cmd.Process.Pid, unix.SIGCONT)
	c.ended("137 true false")
	c.none()
}

func TestAThousandChildren(t *testing.T) {
	t.Parallel()
	c := crewOf(t, 0, `i=0; while [ $i -lt 1000 ]; do sleep 999 & i=$((i+1)); done; : >$DIR/all; trap "" TERM; while :; do sleep 0.1; done`)
	c.written("all")
	kill(t, c.cmd.Process.Pid, unix.SIGKILL)
	c.none()
}

// Who is at the other end of the command's pipes sees what the command does.
func TestAClosedPipeIsSeen(t *testing.T) {
	t.Parallel()
	c := crewOf(t, 0, `exec >&- 2>&-; : >$DIR/closed; until [ -e $DIR/go ]; do sleep 0.02; done; exit 9`)
	c.written("closed")
	// The stand-in keeps a copy of stdout for its words; the guardian has none.
	fds, err := filepath.Glob("/proc/" + itoa(c.guardian) + "/fd/*")
	if err != nil || len(fds) < 4 {
		t.Fatal(fds, err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "pipe:") {
			t.Errorf("the guardian has %s open as %s", to, filepath.Base(fd))
		}
	}
	if err := os.WriteFile(c.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.ended("9 false false")
}

// The lock of the life file lasts as long as anything of the command.
func TestTheLifeFileLastsAsLongAsTheCommand(t *testing.T) {
	t.Parallel()
	life := filepath.Join(t.TempDir(), "life")
	if err := os.WriteFile(life, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := crewOf(t, 0, unruly, "LIFE="+life)
	c.written(unrulyFiles...)
	f, err := os.Open(life)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		t.Fatal("the life file isn't locked")
	}
	kill(t, c.cmd.Process.Pid, unix.SIGKILL)
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if left := c.mates(); left != nil {
		t.Errorf("the life file's lock ended before %v", left)
	}
}

func TestASignalToTheGuardianIsMeantForDibs(t *testing.T) {
	t.Parallel()
	c := crewOf(t, 0, `trap ": >$DIR/term; exit 7" TERM; kill -TERM $PPID; while :; do sleep 0.02; done`)
	if got := c.line(); got != "relayed: terminated" {
		t.Fatal(got)
	}
	c.ended("7 false false")
}

func TestAStopIsToldOf(t *testing.T) {
	t.Parallel()
	c := crewOf(t, 0, `kill -TSTP $$; exit 3`)
	if got := c.line(); got != "stopped: stopped" {
		t.Fatal(got)
	}
	c.ended("3 false false")
}
