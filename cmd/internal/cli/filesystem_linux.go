package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// knowsFileSystems tells whether stores refuse network file systems here.
const knowsFileSystems = true

// mountOf names the type of the file system that path is on, or "".
func mountOf(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return mountType(string(mounts), path)
}

// mountType finds in a mountinfo (proc(5)) the longest mount point above path; of
// two mounts on one, the later hides the earlier.
func mountType(mounts, path string) (name string) {
	longest := -1
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		f, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(tail) == 0 {
			continue
		}
		point := strings.TrimSuffix(unescape(f[4]), "/")
		if strings.HasPrefix(path+"/", point+"/") && len(point) >= longest {
			longest, name = len(point), tail[0]
		}
	}
	return name
}

// unescape reads the octal escapes of a mount point: \040 is a space.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// freeSpace is how many bytes a user can still write there; -1: not known.
func freeSpace(path string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &st); err != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize)
}
