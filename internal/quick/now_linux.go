//go:build linux && !race

package quick

import (
	"syscall"
	"unsafe"
)

const readsNow = true

// readNow reads what is there from a file that does not block. later: nothing is,
// yet. 0 and not later: its end, or an error.
func readNow(fd uintptr, p []byte) (n int, later bool) { return now(syscall.SYS_READ, fd, p) }

// writeNow writes as much as there is room for to a file that does not block.
// later: there is none, yet. 0 and not later: an error.
func writeNow(fd uintptr, p []byte) (n int, later bool) { return now(syscall.SYS_WRITE, fd, p) }

func now(call, fd uintptr, p []byte) (n int, later bool) {
	if len(p) == 0 {
		return 0, false
	}
	done, _, err := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	if err != 0 {
		return 0, err == syscall.EAGAIN
	}
	return int(done), false
}
