//go:build !linux

package sqlitelock

// fileSystem can't tell here: the caller is trusted.
func fileSystem(string) (name string, isLocal bool) { return "", true }

// freeSpace can't tell here.
func freeSpace(string) int64 { return -1 }
