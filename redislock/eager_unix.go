//go:build unix

package redislock

import "syscall"

const readsNow = true

// readNow reads what is there from a file that does not block; 0: nothing, its end,
// or an error, which the next read sees as well.
func readNow(fd uintptr, p []byte) int {
	n, err := syscall.Read(int(fd), p)
	if err != nil {
		return 0
	}
	return n
}
