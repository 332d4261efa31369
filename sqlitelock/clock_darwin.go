package sqlitelock

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// newClock returns CLOCK_MONOTONIC, which on macOS goes on during sleep. Its
// domain is the boot session.
func newClock() (*clock, error) {
	session, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return nil, fmt.Errorf("which boot this is can't be told: %w", err)
	}
	read := func() int64 {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			panic("sqlitelock: CLOCK_MONOTONIC: " + err.Error())
		}
		return ts.Nano()
	}
	return &clock{now: read, domain: number(session), wall: time.Now}, nil
}
