package sqlitelock

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// newClock returns CLOCK_BOOTTIME. Its domain is the boot id and the time
// namespace, whose offset shifts the clock. Where the kernel tells the offset it
// is taken out, so that containers of one machine that share a file read the same
// clock, and nothing has to be re-stamped between them.
func newClock() (*clock, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("which boot this is can't be told: %w", err)
	}
	space, offset := timeNamespace()
	read := func() int64 {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			panic("sqlitelock: CLOCK_BOOTTIME: " + err.Error()) // Linux has had it since 2.6.39
		}
		return ts.Nano() - offset
	}
	return &clock{now: read, domain: number(strings.TrimSpace(string(boot)) + " " + space), wall: time.Now}, nil
}

// timeNamespace names the time namespace and the clock's offset in it. A machine
// without time namespaces has one, without a name.
func timeNamespace() (space string, offset int64) {
	space, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		return "", 0
	}
	// The offsets shown are those of the namespace for children, which is ours
	// except right after unshare(2).
	if children, err := os.Readlink("/proc/self/ns/time_for_children"); err != nil || children != space {
		return space, 0
	}
	text, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return space, 0
	}
	offset, ok := bootOffset(string(text))
	if !ok {
		return space, 0
	}
	return "", offset
}

// bootOffset reads the line "boottime <seconds> <nanoseconds>".
func bootOffset(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "boottime" {
			continue
		}
		sec, err1 := strconv.ParseInt(f[1], 10, 64)
		nsec, err2 := strconv.ParseInt(f[2], 10, 64)
		return sec*int64(time.Second) + nsec, err1 == nil && err2 == nil
	}
	return 0, false
}
