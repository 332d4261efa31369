package main

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"time"
)

// pingsOnFive is what no quorum can do without: two rounds of one PING to each node,
// of which all are sent before the first answer is read.
var pingsOnFive = player{name: "two PINGs at each of five nodes", open: openPings}

type pings struct {
	conns []net.Conn
	from  []*bufio.Reader
}

func openPings(_ context.Context, where string, _ time.Duration) (client, error) {
	var p pings
	for addr := range strings.SplitSeq(where, ",") {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.conns, p.from = append(p.conns, c), append(p.from, bufio.NewReader(c))
	}
	return p, nil
}

func (p pings) lock(ctx context.Context, _ string) (lease, error) { return p, p.Release(ctx) }

// Release is one round.
func (p pings) Release(context.Context) error {
	for _, c := range p.conns {
		if _, err := c.Write([]byte("PING\r\n")); err != nil {
			return err
		}
	}
	for _, r := range p.from {
		if _, err := r.ReadSlice('\n'); err != nil {
			return err
		}
	}
	return nil
}

func (p pings) Close() error {
	var errs []error
	for _, c := range p.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
