package child

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// A Process is a command that was started. Its methods may be called from any
// goroutine, also after its end.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	gone   chan struct{}
	code   int   // read after gone
	err    error // read after gone

	mu   sync.Mutex // guards over
	over bool       // the id may belong to another process by now
}

// Start starts the program at path with argv (its own name first), env, and files
// for stdin, stdout and stderr. The error is that of the kernel: the program can't
// be executed.
func Start(path string, argv, env []string, files [3]*os.File) (*Process, error) {
	p := &Process{
		cmd: &exec.Cmd{
			Path:        path,
			Args:        argv,
			Env:         env,
			Stdin:       files[0],
			Stdout:      files[1],
			Stderr:      files[2],
			SysProcAttr: attributes(),
		},
		exited: make(chan struct{}),
		gone:   make(chan struct{}),
	}
	started := make(chan error)
	go p.run(started) // ends when the whole group is gone
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run starts the command and follows it to the end of its group.
func (p *Process) run(started chan<- error) {
	// The kernel sends the death signal when the thread that started the command
	// ends, and not the process; so the thread stays, and ends with this goroutine.
	runtime.LockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	// Where the kernel can tell of the end without reaping, the id stays ours
	// until the group is empty: no signal can hit a stranger.
	if !awaitExit(p.Pid()) {
		p.reap()
	}
	first := true
	for pause := 2 * time.Millisecond; p.groupLives(); pause = min(2*pause, 100*time.Millisecond) {
		if first {
			close(p.exited)
			first = false
		}
		time.Sleep(pause) // no event tells of the end of a process that is not our child
	}
	p.end()
	close(p.gone)
	if first {
		close(p.exited)
	}
}

// reap collects the command, once. It waits for the command if it still runs.
func (p *Process) reap() {
	if p.cmd.ProcessState != nil || p.err != nil {
		return
	}
	err := p.cmd.Wait()
	if p.cmd.ProcessState == nil {
		p.err = err
		return
	}
	p.code = exitCode(p.cmd.ProcessState)
}

// end reaps and, in the same step, lets no signal out any more.
func (p *Process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reap()
	p.over = true
}

// Pid returns the command's id, which is its group's too.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the command itself has ended. If Gone is not closed by
// then, it has left others in its group.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Gone is closed when nothing is left of the group.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Code returns how the command ended: its own code, or 128+n after signal n. Call
// it when Gone is closed. The error says that this cannot be known.
func (p *Process) Code() (int, error) { return p.code, p.err }

// Signal sends sig to the whole group. A group that has ended is no error.
func (p *Process) Signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	return p.signalLocked(sig)
}
