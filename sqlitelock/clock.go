package sqlitelock

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// A clock tells the moments that claims are judged by. They grow while the
// machine is suspended, no step of the wall clock moves them, and they mean
// something only within their domain: one boot of one machine.
type clock struct {
	now    func() int64     // nanoseconds; never negative
	domain int64            // never 0
	wall   func() time.Time // sets the record clock, once in each domain
}

// number makes a short, positive number of what identifies something.
func number(identity string) int64 {
	sum := sha256.Sum256([]byte(identity))
	return int64(binary.BigEndian.Uint64(sum[:])>>1) | 1
}
