//go:build !linux

package cli

// knowsFileSystems tells whether stores refuse network file systems here.
const knowsFileSystems = false

func mountOf(string) string { return "" }

func freeSpace(string) int64 { return -1 }
