package guard

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dibslock/dibs/internal/boottime"
)

// Start starts a command under a guardian. Beside its files it has what else this
// process did not open itself. An error that is a [syscall.Errno] is that of the
// kernel: the program can't be executed.
func Start(s Spec) (*Process, error) {
	// What the guardian leaves behind when it is killed comes to this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, os.NewSyscallError("prctl", err)
	}
	l, guardian, err := launch(s)
	if err != nil {
		return nil, fmt.Errorf("guardian: %w", err)
	}
	guardians.Store(guardian, true)
	p := &Process{
		line: l, guardian: guardian, now: boottime.Now(),
		exited: make(chan struct{}), gone: make(chan struct{}), ended: make(chan struct{}),
		stops: make(chan syscall.Signal, 1), relays: make(chan os.Signal, 8),
	}
	first := order{
		Start: &command{Path: s.Path, Argv: s.Argv, Env: s.Env, Foreground: s.Foreground},
		Limit: p.deadline(s.Limit),
	}
	l.send(first)
	var r report
	if err := l.dec.Decode(&r); err != nil {
		return nil, p.stillborn(fmt.Errorf("guardian: it ended: %w", err))
	}
	if r.Errno != 0 {
		return nil, p.stillborn(r.Errno)
	}
	p.pid = r.Pid
	if err := s.letGo(); err != nil {
		p.Whole()
		_ = p.Kill()
		go p.listen() // ends with the guardian
		<-p.Gone()
		p.Close()
		return nil, err
	}
	go p.listen() // ends with the guardian
	return p, nil
}

// letGo gives up what the command has instead.
func (s Spec) letGo() error {
	if s.shares() {
		return letGo(0, 1)
	}
	return nil
}

// launch starts the guardian.
func launch(s Spec) (*line, int, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, os.NewSyscallError("socketpair", err)
	}
	defer unix.Close(ends[1])
	if err := unix.SetNonblock(ends[0], true); err != nil {
		return nil, 0, err
	}
	conn := os.NewFile(uintptr(ends[0]), "guardian")
	pid, err := reexecute(ends[1], s)
	if err != nil {
		_ = conn.Close()
		return nil, 0, err
	}
	return newLine(conn), pid, nil
}

// passing is held while descriptors are open for a child to inherit.
var passing sync.Mutex

// reexecute runs this program as the guardian. The descriptors keep their numbers:
// those that exec.Cmd.ExtraFiles would give them may be the command's.
func reexecute(conn int, s Spec) (int, error) {
	// Between here and the end others would inherit what this guardian alone is to
	// have.
	passing.Lock()
	defer passing.Unlock()
	path := "/proc/self/exe" // also if the file was replaced meanwhile
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath(os.Args[0]); err != nil { // no /proc: what we were called by
			return 0, err
		}
	}
	conn, err := unix.Dup(conn) // without CLOEXEC
	if err != nil {
		return 0, os.NewSyscallError("dup", err)
	}
	defer unix.Close(conn)
	kept := -1
	if s.Life != nil {
		if kept, err = dupOf(s.Life); err != nil {
			return 0, err
		}
		defer unix.Close(kept)
	}
	files := s.files()
	cmd := exec.Cmd{
		Path: path, Args: []string{name}, Env: []string{fmt.Sprintf("%s=%d,%d", fdsVar, conn, kept)},
		Stdin: files[0], Stdout: files[1], Stderr: files[2],
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid := cmd.Process.Pid
	return pid, cmd.Process.Release() // a Reaper collects it
}

// dupOf returns a descriptor of f, without CLOEXEC. It goes around File.Fd, which
// makes what f and others have open together block: f may be a connection.
func dupOf(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = raw.Control(func(it uintptr) { fd, failed = unix.Dup(int(it)) })
	if err == nil {
		err = os.NewSyscallError("dup", failed)
	}
	return fd, err
}
