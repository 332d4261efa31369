package guard

import (
	"errors"
	"os"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Reaper collects the children of this process that have ended: the guardian,
// and whatever was orphaned below it, as process 1 of a container has to. Nothing
// else in the process may start children and wait for them.
type Reaper struct {
	signals chan os.Signal
	done    chan struct{}
}

// NewReaper starts to collect.
func NewReaper() *Reaper {
	r := &Reaper{signals: make(chan os.Signal, 1), done: make(chan struct{})}
	signal.Notify(r.signals, unix.SIGCHLD)
	go func() { // ends when Stop closes signals
		defer close(r.done)
		for ok := true; ok; _, ok = <-r.signals {
			for collect(-1) {
			}
		}
	}()
	return r
}

// Stop ends it.
func (r *Reaper) Stop() {
	signal.Stop(r.signals)
	close(r.signals)
	<-r.done
}

// collect reaps the child with that id, or any with -1, if it has ended.
func collect(pid int) bool {
	for {
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && got > 0
		}
	}
}

// A change of a child's state, as the kernel lays it out in a siginfo_t.
type change struct {
	_      [2]int32
	code   int32
	_      [0]uintptr // what follows is aligned for a pointer
	pid    int32
	_      int32
	status int32
}

// look asks for a change of a child's state; ok tells that there is one.
func look(kind, id, options int) (c change, ok bool) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(kind, id, &info, options|unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		c = *(*change)(unsafe.Pointer(&info))
		return c, err == nil && c.pid != 0
	}
}

const (
	cldExited  = 1 // CLD_EXITED: status is the exit code; otherwise a signal
	leaveAsIs  = unix.WEXITED | unix.WNOWAIT
	lookAtStop = unix.WSTOPPED
)

// exitCode is how a child ended: its own code, or 128+n after signal n.
func (c change) exitCode() int {
	if c.code == cldExited {
		return int(c.status)
	}
	return 128 + int(c.status)
}

// reapOthers collects all children that have ended, except the one to keep.
func reapOthers(keep int) {
	for {
		c, ok := look(unix.P_ALL, 0, leaveAsIs)
		switch {
		case !ok:
			return
		case int(c.pid) != keep:
			collect(int(c.pid))
			continue
		}
		break // it would be found again and again
	}
	all, err := processes()
	if err != nil {
		return
	}
	for _, p := range all {
		if p.ppid == os.Getpid() && !p.live() && p.pid != keep {
			collect(p.pid)
		}
	}
}
