package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Generous: about a hundred times what a quiet machine needs. They only bound
// how long a broken run hangs.
const (
	startPatience = 30 * time.Second
	stopPatience  = 15 * time.Second
)

// errPortTaken says that a server could not start because of its port alone.
var errPortTaken = errors.New("address already in use")

// command is what one run of a server needs.
type command struct {
	path  string
	args  []string
	env   []string // on top of the test's own
	dir   string
	ready string // the server prints this when it accepts connections
	// attr, if it is set, changes how the child is started: as another user.
	attr func(*syscall.SysProcAttr)
	// end asks the server to end in good order; 0: TERM does.
	end syscall.Signal
}

// process is one run of a child, from its start to its end.
type process struct {
	pid    int
	out    *output
	done   chan struct{} // closed when the child has been reaped
	proc   *os.Process
	end    syscall.Signal // what stop sends
	mu     sync.Mutex     // guards paused, and keeps pause and resume in order
	paused bool
}

// living are the children that have not been reaped.
var living = struct {
	mu  sync.Mutex // guards all
	all map[*process]bool
}{all: map[*process]bool{}}

// start runs the command and returns when it says that it is ready. A child
// that ends or stays silent is an error that carries what it printed.
func start(c command) (*process, error) {
	p, err := spawn(c)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(startPatience)
	defer timer.Stop()
	select {
	case <-p.out.ready:
		return p, nil
	case <-p.done:
		if p.out.portTaken() {
			return nil, fmt.Errorf("servers: start %s: %w", c.path, errPortTaken)
		}
		return nil, fmt.Errorf("servers: %s ended before it was ready; it said:\n%s", c.path, p.out)
	case <-timer.C:
		return nil, errors.Join(fmt.Errorf("servers: %s was not ready after %s; it said:\n%s", c.path, startPatience, p.out), p.kill())
	}
}

// spawn starts the child and the goroutine that reaps it.
func spawn(c command) (*process, error) {
	p := &process{out: newOutput(c.ready), done: make(chan struct{}), end: c.end}
	if p.end == 0 {
		p.end = syscall.SIGTERM
	}
	cmd := exec.Command(c.path, c.args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = p.out, p.out
	cmd.SysProcAttr = childAttr()
	if c.attr != nil {
		c.attr(cmd.SysProcAttr)
	}
	cmd.WaitDelay = time.Second // a grandchild may keep the pipe open

	started := make(chan error, 1)
	// Ends when the child has ended. The kernel kills the child when the *thread*
	// that started it ends, not the process: so the thread belongs to this goroutine
	// alone and is kept until there is no child left to lose.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- fmt.Errorf("servers: start %s: %w", c.path, err)
			return
		}
		p.proc, p.pid = cmd.Process, cmd.Process.Pid
		p.record(true)
		started <- nil
		_ = cmd.Wait() // how a server ends is of no interest, only that it has
		p.record(false)
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) record(alive bool) {
	living.mu.Lock()
	defer living.mu.Unlock()
	if alive {
		living.all[p] = true
	} else {
		delete(living.all, p)
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop asks the child to end and waits until it has. One that doesn't is killed,
// and that is an error.
func (p *process) stop() error {
	if p.ended() {
		return nil
	}
	// A stopped process takes no signal but KILL.
	if err := p.resume(); err != nil {
		return err
	}
	if err := p.proc.Signal(p.end); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("servers: terminate process %d: %w", p.pid, err)
	}
	if p.await() {
		return nil
	}
	return errors.Join(fmt.Errorf("servers: process %d did not end on %v; it said:\n%s", p.pid, p.end, p.out), p.kill())
}

// kill ends the child, and the processes that it started in its group, at once.
func (p *process) kill() error {
	if p.ended() {
		return nil
	}
	if err := signalGroup(p.proc, syscall.SIGKILL); err != nil && !p.await() {
		return fmt.Errorf("servers: kill process %d: %w", p.pid, err)
	}
	if !p.await() {
		return fmt.Errorf("servers: process %d survives KILL", p.pid)
	}
	return nil
}

// await reports whether the child has ended within the time allowed.
func (p *process) await() bool {
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// pause stops the child where it stands; on Linux it has stopped when pause
// returns.
func (p *process) pause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		return nil
	}
	if p.ended() {
		return fmt.Errorf("servers: pause process %d: %w", p.pid, os.ErrProcessDone)
	}
	if err := pauseGroup(p.proc); err != nil {
		return fmt.Errorf("servers: pause process %d: %w", p.pid, err)
	}
	p.paused = true
	return nil
}

// resume undoes pause; it does nothing to a child that runs.
func (p *process) resume() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.paused {
		return nil
	}
	if err := resumeGroup(p.proc); err != nil {
		return fmt.Errorf("servers: resume process %d: %w", p.pid, err)
	}
	p.paused = false
	return nil
}
