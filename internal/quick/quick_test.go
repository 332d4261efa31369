package quick_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dibslock/dibs/internal/quick"
)

// ends returns a quick connection and its other end, over TCP, a socket of the machine
// and a pipe, of which the system knows nothing.
func ends(t *testing.T) map[string][2]net.Conn {
	t.Helper()
	one, other := net.Pipe()
	all := map[string][2]net.Conn{"pipe": {quick.New(one, nil), other}}
	for network, at := range map[string]string{"tcp": "127.0.0.1:0", "unix": t.TempDir() + "/socket"} {
		l, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		near, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		all[network] = [2]net.Conn{quick.New(near, nil), far}
	}
	t.Cleanup(func() {
		for _, c := range all {
			_ = c[0].Close()
			_ = c[1].Close()
		}
	})
	return all
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

// counted counts how it is used, and tells when a read is about to wait.
type counted struct {
	*net.TCPConn
	usual, quick int
	waits        chan struct{} // capacity 2
}

func (c *counted) Read(p []byte) (int, error) {
	c.usual++
	c.waits <- struct{}{}
	return c.TCPConn.Read(p)
}

func (c *counted) Write(p []byte) (int, error) {
	c.usual++
	return c.TCPConn.Write(p)
}

func (c *counted) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.TCPConn.SyscallConn()
	return countedRaw{raw, c}, err
}

type countedRaw struct {
	syscall.RawConn
	c *counted
}

func (r countedRaw) Read(f func(uintptr) bool) error {
	r.c.quick++
	return r.RawConn.Read(func(fd uintptr) bool {
		done := f(fd)
		if !done {
			r.c.waits <- struct{}{}
		}
		return done
	})
}

func (r countedRaw) Write(f func(uintptr) bool) error {
	r.c.quick++
	return r.RawConn.Write(f)
}

// The processors are asked about at each call, and what is quick is nothing else too.
func TestQuickWhileItIsWanted(t *testing.T) {
	c := ends(t)["tcp"]
	tcp, ok := c[0].(*quick.Conn).Conn.(*net.TCPConn)
	if !ok {
		t.Fatalf("%T", c[0].(*quick.Conn).Conn)
	}
	wanted := false
	count := &counted{TCPConn: tcp, waits: make(chan struct{}, 2)}
	q := quick.New(count, func() bool { return wanted })
	if !q.Looks() {
		t.Skip("not on this system")
	}
	for range 3 {
		wanted = !wanted
		before := *count
		if _, err := q.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 1)
		if _, err := io.ReadFull(c[1], got); err != nil || string(got) != "x" {
			t.Fatal(string(got), err)
		}
		var far sync.WaitGroup
		far.Go(func() {
			<-count.waits
			if _, err := c[1].Write([]byte("y")); err != nil {
				t.Error(err)
			}
		})
		if n, err := q.Read(got); n != 1 || err != nil || string(got) != "y" {
			t.Fatal(n, err)
		}
		far.Wait()
		usual, fast := count.usual-before.usual, count.quick-before.quick
		if wanted && (usual != 0 || fast != 2) || !wanted && (usual != 2 || fast != 0) {
			t.Errorf("wanted %t: %d usual calls, %d quick ones", wanted, usual, fast)
		}
	}
}

// A look finds what is there, and waits for nothing.
func TestLook(t *testing.T) {
	c := ends(t)["tcp"]
	q := c[0].(*quick.Conn)
	if !q.Looks() {
		t.Skip("not on this system")
	}
	p := make([]byte, 4)
	if n, err := q.Look(p); n != 0 || err != nil {
		t.Errorf("nothing is there: %d, %v", n, err)
	}
	if _, err := c[1].Write([]byte("there")); err != nil {
		t.Fatal(err)
	}
	var seen string
	for len(seen) < 5 {
		n, err := q.Look(p)
		if err != nil {
			t.Fatal(err)
		}
		seen += string(p[:n])
	}
	if seen != "there" {
		t.Errorf("it saw %q", seen)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := q.Look(p); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %d, %v", n, err)
	}
	if c := ends(t)["pipe"]; c[0].(*quick.Conn).Looks() {
		t.Error("it looks into a pipe of Go's own")
	}
}

// A socket that was put into blocking mode, by way of another descriptor, holds up
// nobody.
func TestQuickInBlockingMode(t *testing.T) {
	c := ends(t)["tcp"]
	q := c[0].(*quick.Conn)
	file, err := q.Conn.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if !quick.NeverBlocks {
		t.Skip("only Linux can tell, and not under the race detector")
	}
	file.Fd()                                       // this does it
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // whoever blocks holds up everybody
	p := make([]byte, 4)
	if n, err := q.Look(p); n != 0 || err != nil {
		t.Errorf("nothing is there: %d, %v", n, err)
	}
	var far sync.WaitGroup
	defer far.Wait()
	far.Go(func() { // ends with the read and the write
		if _, err := c[1].Write([]byte("come")); err != nil {
			t.Error(err)
		}
		if _, err := io.CopyN(io.Discard, c[1], 64<<20); err != nil {
			t.Error(err)
		}
	})
	if _, err := io.ReadFull(q, p); err != nil || string(p) != "come" {
		t.Errorf("%q, %v", p, err)
	}
	if n, err := q.Write(make([]byte, 64<<20)); n != 64<<20 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
