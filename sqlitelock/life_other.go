//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package sqlitelock

// Without flock there is no proof of a death: the TTL decides.

func (l *life) create() error                 { return nil }
func (l *life) dead(client, proof int64) bool { return false }
func (l *life) wake(client int64)             {}
func (l *life) close(orderly bool) error      { return nil }

func (l *life) leftovers(f func(client int64) (done bool)) {}
