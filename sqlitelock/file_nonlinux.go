//go:build !linux

package sqlitelock

// fileSystem can't tell here: the caller is trusted.
func fileSystem(string) (name string, isLocal bool) { return "", true }
