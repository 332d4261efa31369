package redislock

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ends returns a quick connection and its other end, over TCP and over a pipe, of
// which the system knows nothing.
func ends(t *testing.T) map[string][2]net.Conn {
	t.Helper()
	e, _, far := pair(t)
	one, other := net.Pipe()
	t.Cleanup(func() {
		_ = one.Close()
		_ = other.Close()
	})
	return map[string][2]net.Conn{"tcp": {newQuick(e.Conn, yes), far}, "pipe": {newQuick(one, yes), other}}
}

// A quick connection carries all that is written, in its order, also when there is
// no room for it at once, and several write.
func TestQuickCarriesEverything(t *testing.T) {
	for kind, c := range ends(t) {
		t.Run(kind, func(t *testing.T) {
			const writers, size = 4, 4 << 20 // more than any buffer holds
			piece := func(w int) []byte {
				p := make([]byte, size)
				_, _ = rand.NewChaCha8([32]byte{byte(w)}).Read(p)
				return p
			}
			pieces := [writers][]byte{}
			for w := range pieces {
				pieces[w] = piece(w)
			}
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					if n, err := c[0].Write(pieces[w]); n != size || err != nil {
						t.Errorf("writer %d: %d, %v", w, n, err)
					}
				})
			}
			got := make([]byte, writers*size)
			if _, err := io.ReadFull(c[1], got); err != nil {
				t.Fatal(err)
			}
			all.Wait()
			for w := range pieces {
				at := bytes.Index(got, pieces[w][:64])
				if at < 0 || !bytes.HasPrefix(got[at:], pieces[w]) {
					t.Errorf("what %d wrote as one did not come as one", w)
				}
			}

			back := piece(writers)
			all.Go(func() {
				if _, err := c[1].Write(back); err != nil {
					t.Error(err)
				}
			})
			heard := make([]byte, size)
			if _, err := io.ReadFull(c[0], heard); err != nil || !bytes.Equal(heard, back) {
				t.Fatalf("what came back is something else: %v", err)
			}
			all.Wait()
		})
	}
}

// Reads and writes of a quick connection end as those of any other: at a deadline,
// when it is closed here or there, and at its end.
func TestQuickEndsAsAnyOther(t *testing.T) {
	much := make([]byte, 64<<20)
	for _, end := range []struct {
		what  string
		do    func(near, far net.Conn) error
		read  []error // one of them
		write []error
	}{
		{
			"a deadline has passed", func(near, _ net.Conn) error { return near.SetDeadline(time.Now().Add(-time.Second)) },
			[]error{os.ErrDeadlineExceeded},
			[]error{os.ErrDeadlineExceeded},
		},
		{
			"a deadline passes", func(near, _ net.Conn) error { return near.SetDeadline(time.Now().Add(50 * time.Millisecond)) },
			[]error{os.ErrDeadlineExceeded},
			[]error{os.ErrDeadlineExceeded},
		},
		{
			"it is closed", func(near, _ net.Conn) error { return near.Close() },
			[]error{net.ErrClosed, io.ErrClosedPipe},
			[]error{net.ErrClosed, io.ErrClosedPipe},
		},
		{
			"the other end is closed", func(_, far net.Conn) error { return far.Close() },
			[]error{io.EOF, syscall.ECONNRESET},
			[]error{syscall.EPIPE, syscall.ECONNRESET, io.ErrClosedPipe},
		},
	} {
		for kind, c := range ends(t) {
			t.Run(end.what+"/"+kind, func(t *testing.T) {
				var both sync.WaitGroup
				both.Go(func() {
					if _, err := c[1].Write([]byte("x")); err != nil {
						t.Error(err)
					}
				})
				if n, err := c[0].Read(make([]byte, 2)); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				both.Wait()
				written := 0
				ended := func(call string, want []error, n, all int, err error) {
					for _, w := range want {
						if errors.Is(err, w) {
							return
						}
					}
					t.Errorf("%s: %d of %d, %v; want one of %v", call, n, all, err, want)
				}
				both.Go(func() {
					n, err := c[0].Read(make([]byte, 1))
					ended("Read", end.read, n, 1, err)
				})
				both.Go(func() {
					n, err := c[0].Write(much)
					if n >= len(much) {
						t.Errorf("Write: %d of %d bytes that nobody reads", n, len(much))
					}
					ended("Write", end.write, n, len(much), err)
					written = n
				})
				if err := end.do(c[0], c[1]); err != nil {
					t.Fatal(err)
				}
				both.Wait()
				_ = c[0].Close()
				if n, err := io.Copy(io.Discard, c[1]); err == nil && n != int64(written) {
					t.Errorf("Write tells of %d bytes, and %d came", written, n)
				}
			})
		}
	}
}
