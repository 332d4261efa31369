//go:build !unix

package redislock

// readNow never finds anything here: so no read is eager for long.
func readNow(uintptr, []byte) int { return 0 }
