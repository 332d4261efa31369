package servers

import (
	"errors"
	"fmt"
	"sync"
)

// startAttempts bounds how many ports are tried: to lose one port to a stranger
// between the test and the bind is rare, to lose ten in a row is a fault.
const startAttempts = 10

// launch starts a server on the first port of next that the server can bind.
func launch(r recipe, dir string, next func() (int, error)) (*Server, error) {
	var last error
	for range startAttempts {
		port, err := next()
		if err != nil {
			return nil, err
		}
		s := &Server{recipe: r, dir: dir, port: port}
		if last = s.up(); last == nil {
			return s, nil
		}
		freePort(port)
		if !errors.Is(last, errPortTaken) {
			return nil, last
		}
	}
	return nil, fmt.Errorf("servers: %s found no port in %d attempts: %w", r.name, startAttempts, last)
}

// together calls start for 0..n-1 side by side and returns what it made, in
// order. If one fails, its error comes back with the others' servers, which the
// caller still has to end.
func together[S any](n int, start func(i int) (S, error)) ([]S, error) {
	made := make([]S, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { made[i], errs[i] = start(i) })
	}
	wg.Wait()
	return made, errors.Join(errs...)
}
