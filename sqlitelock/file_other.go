//go:build !unix

package sqlitelock

import "os"

func links(os.FileInfo) uint64 { return 1 }

func syncDir(string) error { return nil }
