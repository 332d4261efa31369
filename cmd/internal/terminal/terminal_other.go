//go:build !linux

package terminal

// A Terminal doesn't exist here. All methods of a nil *Terminal do nothing.
type Terminal struct{}

// Open returns nil.
func Open() *Terminal { return nil }

// Close has nothing to close.
func (t *Terminal) Close() {}

// Job is false.
func (t *Terminal) Job() bool { return false }

// Keep has nothing to remember.
func (t *Terminal) Keep() {}

// Reclaim has nothing to take back.
func (t *Terminal) Reclaim() {}
