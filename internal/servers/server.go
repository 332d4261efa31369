package servers

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// recipe is what a kind of server is: how to run it and how to know it.
type recipe struct {
	name    string
	command func(dir string, port int) command
	// probe returns nil if the server at the address works and is this process.
	probe func(addr string, pid int) error
}

// Server is one server process and the faults that a test may cause to it. Its
// address stays the same through all of them.
//
// Stop, Kill, Pause, Resume and Restart are for one goroutine at a time; the
// rest may be called from any.
type Server struct {
	recipe recipe
	dir    string
	port   int

	mu  sync.Mutex // guards run
	run *process   // the latest run, perhaps ended
}

// Addr returns the host and port that clients dial.
func (s *Server) Addr() string { return address(s.port) }

// Port returns the port alone.
func (s *Server) Port() int { return s.port }

// Dir returns the directory that holds the server's data.
func (s *Server) Dir() string { return s.dir }

// PID returns the id of the latest process, running or not.
func (s *Server) PID() int { return s.current().pid }

// Log returns the end of what the latest process printed.
func (s *Server) Log() string { return s.current().out.String() }

// Done returns a channel that is closed when the process that runs now ends.
func (s *Server) Done() <-chan struct{} { return s.current().done }

// Stop ends the server as an administrator would (TERM) and returns when it is
// gone. It does nothing to a server that is down.
func (s *Server) Stop() error { return s.current().stop() }

// Kill ends the server as a crash would (kill -9), along with the processes it
// started, and returns when it is gone. It does nothing to a server that is
// down.
func (s *Server) Kill() error { return s.current().kill() }

// Pause freezes the server (SIGSTOP): its kernel still accepts connections and
// bytes, and nobody answers. On Linux no thread of it runs any more when Pause
// returns. Pausing a server that is paused does nothing.
func (s *Server) Pause() error { return s.current().pause() }

// Resume lets a paused server go on where it stood.
func (s *Server) Resume() error { return s.current().resume() }

// Restart stops the server if it runs, starts it again on the same port and
// directory, and returns when it answers. What it remembers is what its options
// made it write down. While somebody else holds the port, Restart waits, for as
// long as a start may take.
func (s *Server) Restart() error {
	if err := s.Stop(); err != nil {
		return err
	}
	deadline := time.Now().Add(startPatience)
	for {
		err := s.up()
		if !errors.Is(err, errPortTaken) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond) // nothing tells when a port gets free
	}
}

// up starts a process and returns when it answers.
func (s *Server) up() error {
	c := s.recipe.command(s.dir, s.port)
	p, err := start(c)
	if err != nil {
		return err
	}
	if err := s.recipe.probe(s.Addr(), p.pid); err != nil {
		return errors.Join(fmt.Errorf("servers: %s at %s does not work: %w; it said:\n%s", s.recipe.name, s.Addr(), err, p.out), p.kill())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = p
	return nil
}

// end kills the server and gives up its port.
func (s *Server) end() error {
	err := s.Kill()
	freePort(s.port)
	return err
}

func (s *Server) report() string {
	return fmt.Sprintf("%s at %s, process %d, said:\n%s", s.recipe.name, s.Addr(), s.PID(), s.Log())
}

func (s *Server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}
