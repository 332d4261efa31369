//go:build unix && (!linux || race || 386 || s390x)

package quick

import "syscall"

const (
	readsNow    = true
	neverBlocks = false
)

// The race detector takes it that what was written to any file was seen by whoever
// reads from one afterwards, as far as these calls tell it. So it knows that a lock
// orders what is done under it, also by two clients in one process.

func readNow(fd uintptr, p []byte) (n int, later bool) { return now(syscall.Read(int(fd), p)) }

func writeNow(fd uintptr, p []byte) (n int, later bool) { return now(syscall.Write(int(fd), p)) }

func now(n int, err error) (int, bool) {
	if err != nil {
		return 0, err == syscall.EAGAIN
	}
	return n, false
}
