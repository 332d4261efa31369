package guard

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dibslock/dibs/internal/boottime"
)

// The program becomes the guardian before anything else of it is initialized: the
// guardian is small, and starts on the main thread, which lives as long as the
// process does. (The kernel sends the death signal to the command when the thread
// ends that started it.) No other way leads here: dibs gives it this name, and no
// arguments.
func init() {
	if len(os.Args) == 1 && os.Args[0] == name && os.Getenv(fdsVar) != "" {
		syscall.Exit(serve())
	}
}

// lastWords is how long a command may take to end after dibs was killed. Nobody
// may wait for long: another is in line.
const lastWords = 250 * time.Millisecond

// settleTime is how much later than dibs itself the guardian hears of a signal
// that was sent to both, or to all processes of a service.
const settleTime = 50 * time.Millisecond

// A guardian is the process that starts the command and watches over it.
type guardian struct {
	line *line
	now  boottime.Source
	pid  int // the command, which is not collected: so its number stays its own

	limit    deadline // Kill 0: none
	orphaned bool     // dibs is gone
	whole    bool     // all descendants count, not only the group
	killing  bool     // all descendants are to be killed
	exited   bool     // the command itself has ended
	gone     bool     // nothing is left, and dibs knows
	pause    time.Duration
}

func serve() int {
	conn, err := inherited()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dibs: guardian:", err)
		return 125
	}
	signals, children := make(chan os.Signal, 8), make(chan os.Signal, 1)
	for _, sig := range relayed {
		if !signal.Ignored(sig) { // as with nohup: it stays so, for the command too
			signal.Notify(signals, sig)
		}
	}
	signal.Notify(children, unix.SIGCHLD)
	g := &guardian{line: newLine(conn), now: boottime.Now()}
	if err := g.start(); err != nil {
		return 125
	}
	return g.run(signals, children)
}

// relayed are the signals that a process may send to its parent, and mean dibs.
var relayed = []os.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
	unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP,
}

// inherited returns the socket, and keeps it and the life file from the command.
func inherited() (*os.File, error) {
	var conn, life int
	if _, err := fmt.Sscanf(os.Getenv(fdsVar), "%d,%d", &conn, &life); err != nil {
		return nil, fmt.Errorf("%s: %w", fdsVar, err)
	}
	unix.CloseOnExec(conn)
	if life >= 0 {
		unix.CloseOnExec(life) // open, in nobody's hands, until this process ends
	}
	if err := unix.SetNonblock(conn, true); err != nil {
		return nil, err
	}
	short := []byte("dibs-guardian\x00") // in place of exe; the kernel keeps 15 bytes
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&short[0])), 0, 0, 0)
	return os.NewFile(uintptr(conn), "dibs"), unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// start starts the command, as the first order says.
func (g *guardian) start() error {
	var first order
	if err := g.line.dec.Decode(&first); err != nil {
		return err
	}
	g.limit = *first.Limit
	c := first.Start
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.Foreground {
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			defer tty.Close()
			attr.Foreground, attr.Ctty = true, int(tty.Fd())
		}
	}
	cmd := exec.Cmd{Path: c.Path, Args: c.Argv, Env: c.Env, SysProcAttr: attr, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	err := cmd.Start()
	if err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = unix.EINVAL
		}
		g.line.send(report{Errno: errno})
		_ = g.line.dec.Decode(&first) // dibs has heard of it, and hangs up
		return err
	}
	g.pid = cmd.Process.Pid
	_ = cmd.Process.Release()
	if err := letGo(0, 1, 2); err != nil {
		fmt.Fprintln(os.Stderr, "dibs: guardian:", err)
	}
	closeInherited()
	g.line.send(report{Pid: g.pid})
	return nil
}

// run returns when dibs says so, or when dibs is gone and nothing is left of the
// command.
func (g *guardian) run(signals, children <-chan os.Signal) int {
	orders := make(chan order)
	go g.listen(orders) // ends with the socket, or with the process
	timer := time.NewTimer(0)
	for {
		g.collect()
		sleep, over := g.step(g.now())
		if over {
			return 0
		}
		timer.Reset(sleep)
		select {
		case o, ok := <-orders:
			if !ok {
				g.orphan(g.now())
				orders = nil
			}
			if o.Bye {
				return 0
			}
			g.take(o)
		case sig := <-signals:
			g.relay(sig)
		case <-children:
		case <-timer.C:
		}
	}
}

func (g *guardian) listen(orders chan<- order) {
	defer close(orders)
	for {
		var o order
		if err := g.line.dec.Decode(&o); err != nil {
			return
		}
		orders <- o
	}
}

func (g *guardian) take(o order) {
	if o.Limit != nil && !g.orphaned && !g.killing {
		g.limit = *o.Limit
	}
	g.whole = g.whole || o.Whole
}

// relay tells dibs of a signal that this process got in its place.
func (g *guardian) relay(sig os.Signal) {
	n, _ := sig.(syscall.Signal)
	time.AfterFunc(settleTime, func() { g.line.send(report{Relayed: int(n)}) })
}

// orphan stops what a dead dibs can't stop any more.
func (g *guardian) orphan(now time.Duration) {
	g.orphaned, g.whole = true, true
	kill := now + lastWords
	if g.limit.Kill != 0 {
		kill = min(kill, g.limit.Kill)
	}
	g.limit = deadline{Term: now, Kill: kill}
}

// collect looks after the children that have changed.
func (g *guardian) collect() {
	if c, ok := look(unix.P_PID, g.pid, lookAtStop); ok {
		g.line.send(report{Stopped: int(c.status)})
	}
	if !g.exited {
		if c, ok := look(unix.P_PID, g.pid, leaveAsIs); ok {
			g.exited, g.pause = true, time.Millisecond
			reapOthers(g.pid)
			g.gone = !g.lives()
			g.line.send(report{Exited: true, Code: c.exitCode(), Gone: g.gone})
		}
	}
	reapOthers(g.pid)
}

// step does what is due, and tells how long to sleep. A second is the most: the
// timers sleep with a suspended machine, and the deadline does not.
func (g *guardian) step(now time.Duration) (sleep time.Duration, over bool) {
	if g.limit.Kill != 0 && !g.gone {
		g.enforce(now)
	}
	if g.exited && !g.gone && !g.lives() {
		g.gone = true
		g.line.send(report{Gone: true})
	}
	switch {
	case g.gone:
		return time.Second, g.orphaned
	case g.killing:
		return 5 * time.Millisecond, false
	}
	sleep = time.Second
	if g.exited {
		// No event tells of the end of a process that is not our child.
		g.pause = min(2*g.pause, 100*time.Millisecond)
		sleep = g.pause
	}
	if g.limit.Kill != 0 {
		sleep = min(sleep, g.limit.Kill-now)
		if g.limit.Term != 0 {
			sleep = min(sleep, g.limit.Term-now)
		}
	}
	return max(sleep, 0), false
}

// enforce stops the command at the deadline.
func (g *guardian) enforce(now time.Duration) {
	if g.limit.Term != 0 && now >= g.limit.Term {
		g.limit.Term, g.whole = 0, true
		g.line.send(report{Overdue: true})
		_ = terminate(g.pid, os.Getpid(), true) // KILL follows
	}
	if now >= g.limit.Kill {
		if !g.killing {
			g.killing, g.whole = true, true
			g.line.send(report{Overdue: true})
		}
		_ = killGroup(g.pid, unix.SIGKILL)
		_, _ = killBelow(os.Getpid(), g.pid, nil) // the group is what can be reached without /proc
	}
}

// lives tells whether anything is left that counts: of the group, or of all that
// is below. The guardian of an inner run whose dibs was killed counts too: it is
// about to stop what that one ran.
func (g *guardian) lives() bool {
	self := os.Getpid()
	// One look can miss a process; a second one would have to miss it too.
	for range 2 {
		all, err := processes()
		if err != nil {
			// Without /proc only the kernel can tell, and it counts the command
			// until that is collected.
			collect(g.pid)
			return unix.Kill(-g.pid, 0) == nil
		}
		for _, p := range below(all, self, nil) {
			if p.live() && (g.whole || p.pgrp == g.pid || p.ppid == self && p.guards()) {
				return true
			}
		}
	}
	return false
}
