//go:build unix

package redislock

import (
	"errors"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dibslock/dibs/internal/quick"
)

// pair returns an eager connection, whether it expects something, and its other end.
func pair(t *testing.T) (e *eager, expects *atomic.Bool, far net.Conn) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	expects = new(atomic.Bool)
	return newEager(quick.New(near, nil), expects.Load), expects, far
}

// An eager connection reads what any other does: what is there, what comes later,
// and its end, whether or not something is expected.
func TestEagerReadsWhatComes(t *testing.T) {
	for _, expected := range []bool{false, true} {
		e, expects, far := pair(t)
		expects.Store(expected)
		buf := make([]byte, 8)
		read := func(want string, wantErr error) {
			t.Helper()
			n, err := e.Read(buf)
			if string(buf[:n]) != want || err != wantErr {
				t.Errorf("expected %t: read %q, %v; want %q, %v", expected, buf[:n], err, want, wantErr)
			}
		}
		write := func(s string) {
			if _, err := far.Write([]byte(s)); err != nil {
				t.Error(err)
			}
		}
		write("there already")
		read("there al", nil)
		read("ready", nil)
		for range 4 { // some of them later than it looks
			done := make(chan struct{})
			go func() {
				defer close(done)
				read("later", nil)
			}()
			write("later")
			<-done
		}
		if err := far.Close(); err != nil {
			t.Fatal(err)
		}
		read("", io.EOF)
	}
}

// After a read that was eager in vain some are not, ever more each time, until one
// was not in vain. What is not expected is not looked for.
func TestEagerWhileItPays(t *testing.T) {
	e, expects, far := pair(t)
	raw, err := e.Conn.Conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	looks, look := 0, e.look
	e.look = func(p []byte) (int, error) {
		looks++
		return look(p)
	}
	write := func() {
		if _, err := far.Write([]byte("x")); err != nil {
			t.Error(err)
		}
	}
	// read reads one byte, which is there or, if it is in vain to look for it, comes
	// when the reader has given up.
	read := func(inVain bool, eager int) {
		t.Helper()
		expects.Store(true)
		e.expect = expects.Load
		if inVain {
			e.expect = func() bool {
				was := expects.Swap(false)
				if !was {
					go write()
				}
				return was
			}
		} else {
			write()
			soon := make([]byte, 1)
			for { // it is there when it can be seen
				if err := raw.Read(func(fd uintptr) bool {
					n, _, _ := syscall.Recvfrom(int(fd), soon, syscall.MSG_PEEK)
					return n == 1
				}); err == nil {
					break
				}
			}
		}
		before := looks
		if n, err := e.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if looks-before != eager {
			t.Errorf("it looked %d times, not %d", looks-before, eager)
		}
	}
	for _, idly := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
		read(true, 1)
		for range idly {
			read(false, 0)
		}
	}
	for range 3 {
		read(false, 1)
		read(true, 1)
		read(false, 0)
	}
	expects.Store(false)
	e.expect = expects.Load
	before := looks
	write()
	if n, err := e.Read(make([]byte, 1)); n != 1 || err != nil || looks != before {
		t.Errorf("%d, %v; it looked %d times for what it did not expect", n, err, looks-before)
	}
}

// A connection that is closed ends the read that looks at it.
func TestEagerEndsWithItsConnection(t *testing.T) {
	e, expects, _ := pair(t)
	expects.Store(true)
	read := make(chan error)
	go func() {
		_, err := e.Read(make([]byte, 1))
		read <- err
	}()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
