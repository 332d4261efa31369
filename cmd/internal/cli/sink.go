package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// standard are the names of the command's own input and output.
var standard = []string{
	"/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2",
	"/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2",
}

// checkSink refuses a path for a flag that writes a file, where writing would do
// harm or never end: the standard streams belong to the command, and may be a
// log that others append to; and a pipe that nobody reads takes nothing.
func checkSink(flag, path string) error {
	if slices.Contains(standard, filepath.Clean(path)) {
		return usagef("%s %s: that is the command's own; nothing was run\nname a file, or open another descriptor: %s /dev/fd/3 3>file", flag, path, flag)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return failf(exitNoStateDir, "can't write %s: nobody reads the pipe %s (%v); nothing was run", flag, path, err)
	}
	return f.Close()
}
