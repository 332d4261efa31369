//go:build !unix

package sqlitelock

import "os"

func links(os.FileInfo) uint64 { return 1 }

// owner can't tell here.
func owner(os.FileInfo) string { return "" }

func syncDir(string) error { return nil }
