//go:build !linux

package boottime

import "time"

// read is nil: the standard library offers no such clock here, and a lease is
// trusted by the monotonic clock alone.
var read Source

func realtime() (time.Time, bool) { return time.Time{}, false }
