//go:build linux && !race && !386 && !s390x

package quick

import (
	"syscall"
	"unsafe"
)

const (
	readsNow    = true
	neverBlocks = true
)

// readNow reads what is there from a socket. later: nothing is, yet. 0 and not
// later: its end, or an error.
func readNow(fd uintptr, p []byte) (n int, later bool) {
	return now(syscall.SYS_RECVFROM, fd, p, syscall.MSG_DONTWAIT)
}

// writeNow writes as much as there is room for to a socket. later: there is none,
// yet. 0 and not later: an error.
func writeNow(fd uintptr, p []byte) (n int, later bool) {
	return now(syscall.SYS_SENDTO, fd, p, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
}

// now does not count on the socket's mode: another descriptor of it may have changed
// that, and a call that blocks here would hold up the whole process.
func now(call, fd uintptr, p []byte, flags uintptr) (n int, later bool) {
	if len(p) == 0 {
		return 0, false
	}
	done, _, err := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
	if err != 0 {
		return 0, err == syscall.EAGAIN
	}
	return int(done), false
}
