package servers

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// shared is a server that the tests of a binary have in common. The first test
// that asks starts it; a start that failed fails every test that asks.
type shared[S ender] struct {
	once sync.Once
	s    S
	err  error
}

// inMain is set while Main runs: only then does anybody end shared servers.
var inMain atomic.Bool

// toEnd are the shared servers that Main ends.
var toEnd = struct {
	mu  sync.Mutex // guards all
	all []func() error
}{}

func (s *shared[S]) get(t testing.TB, kind string, launch func(dir string) (S, error)) S {
	t.Helper()
	if !inMain.Load() {
		t.Fatalf("servers: a shared %s needs func TestMain(m *testing.M) { servers.Main(m) }, which ends it", kind)
	}
	s.once.Do(func() { s.s, s.err = s.launch(launch) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.s
}

func (s *shared[S]) launch(launch func(dir string) (S, error)) (S, error) {
	dir, err := os.MkdirTemp("", "dibs-server-")
	if err != nil {
		var none S
		return none, fmt.Errorf("servers: make a data directory: %w", err)
	}
	made, err := launch(dir)
	if err != nil {
		return made, errors.Join(err, os.RemoveAll(dir))
	}
	toEnd.mu.Lock()
	defer toEnd.mu.Unlock()
	toEnd.all = append(toEnd.all, func() error {
		return errors.Join(made.end(), os.RemoveAll(dir))
	})
	return made, nil
}

// Main runs the tests, ends the shared servers, and exits the process. It is
// the whole body of a TestMain:
//
//	func TestMain(m *testing.M) { servers.Main(m) }
//
// A server that outlived its test is killed and fails the run.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a TestMain that has more to do: it returns the exit code. m is a
// *testing.M, or what stands for one.
func Run(m interface{ Run() int }) int {
	inMain.Store(true)
	code := m.Run()
	if err := errors.Join(endShared(), endLeftovers()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

func endShared() error {
	toEnd.mu.Lock()
	all := toEnd.all
	toEnd.all = nil
	toEnd.mu.Unlock()
	// Side by side: some kinds take their time.
	_, err := together(len(all), func(i int) (struct{}, error) { return struct{}{}, all[i]() })
	return err
}

func endLeftovers() error {
	living.mu.Lock()
	var left []*process
	for p := range living.all {
		left = append(left, p)
	}
	living.mu.Unlock()
	var errs []error
	for _, p := range left {
		errs = append(errs, fmt.Errorf("servers: process %d outlived its test", p.pid), p.kill())
	}
	return errors.Join(errs...)
}
