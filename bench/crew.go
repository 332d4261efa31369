package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// A crew is the worker processes, which are used again and again.
type crew struct{ idle []*hand }

// A hand is a worker as its employer sees it.
type hand struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// take returns n workers, and starts those that are missing.
func (c *crew) take(n int) ([]*hand, error) {
	for len(c.idle) < n {
		h, err := hire()
		if err != nil {
			return nil, err
		}
		c.idle = append(c.idle, h)
	}
	taken := c.idle[len(c.idle)-n:]
	c.idle = c.idle[:len(c.idle)-n]
	return taken, nil
}

// give returns workers that may be used again.
func (c *crew) give(hs []*hand) { c.idle = append(c.idle, hs...) }

// end ends those that are idle.
func (c *crew) end() {
	for _, h := range c.idle {
		h.end()
	}
	c.idle = nil
}

func hire() (*hand, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, workerArg)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &hand{cmd, in, json.NewDecoder(out)}, nil
}

// tell gives an order and does not wait for the answer.
func (h *hand) tell(o order) error { return json.NewEncoder(h.in).Encode(o) }

// hear waits for the answer to the oldest order that has none.
func (h *hand) hear() (a answer, err error) {
	if err := h.out.Decode(&a); err != nil {
		return a, fmt.Errorf("a worker has ended: %w", err)
	}
	if a.Err != "" {
		return a, errors.New(a.Err)
	}
	return a, nil
}

// kill ends the worker as a crash would.
func (h *hand) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// end lets the worker end: it has no more orders.
func (h *hand) end() {
	_ = h.in.Close()
	_ = h.cmd.Wait()
}

// each gives every worker its order, and returns the answers in the same order.
func each(hs []*hand, o func(i int) order) ([]answer, error) {
	var errs []error
	for i, h := range hs {
		errs = append(errs, h.tell(o(i)))
	}
	all := make([]answer, len(hs))
	for i, h := range hs {
		a, err := h.hear()
		all[i], errs = a, append(errs, err)
	}
	return all, errors.Join(errs...)
}

// same is the order for each of them.
func same(o order) func(int) order { return func(int) order { return o } }
