package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// A store is one file: how its server is started, and what is measured on it.
type store struct {
	name     string
	about    string // for the report: what the floor is, and how the server is set
	start    func(dir string) (server, error)
	contests []contest
}

// A server is a running store.
type server interface {
	where() string        // what players connect to
	load() (load, error)  // what it has done since its start
	claims() (int, error) // how many names are locked, or more
	wipe() error          // makes it empty
	stop() error
}

// A load is what a server has done. A store without a server has none.
type load struct {
	commands map[string]int // how many of each kind, those inside scripts too
	cpu      time.Duration
}

// measure starts the server and runs the contests on it.
func (s store) measure(ctx context.Context, opts options) (all []outcome, err error) {
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	srv, err := s.start(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, srv.stop()) }()
	for _, c := range s.contests {
		fmt.Fprintf(os.Stderr, "bench: %s: %s\n", s.name, c.name)
		o, err := c.measure(ctx, srv, opts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		o.store = s
		all = append(all, o)
	}
	return all, nil
}
