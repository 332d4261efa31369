package boottime

import (
	"syscall"
	"time"
	"unsafe"
)

// From linux/time.h.
const (
	clockRealtime = 0
	clockBoottime = 7
)

// read is CLOCK_BOOTTIME: monotonic, and it counts suspended time.
var read Source = func() time.Duration {
	ts, _ := gettime(clockBoottime)
	return time.Duration(ts.Nano())
}

// realtime is the wall clock as the system tells it, past the Go runtime.
func realtime() (time.Time, bool) {
	ts, ok := gettime(clockRealtime)
	return time.Unix(ts.Unix()), ok
}

func gettime(clock uintptr) (syscall.Timespec, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	return ts, errno == 0
}
