package book

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// A Key is an Idempotency-Key that was used: which run it started, and for what
// request.
type Key struct {
	Run     string `json:"run"`
	Request string `json:"request"` // a hash
}

// keyKey hashes both: a key is the client's to choose.
func keyKey(job, key string) string {
	sum := sha256.Sum256([]byte(job + "\x00" + key))
	return "key/" + hex.EncodeToString(sum[:])
}

// Key returns what key started, or ErrNone.
func (b *Book) Key(ctx context.Context, job, key string) (Key, error) {
	var k Key
	found, _, err := b.load(ctx, keyKey(job, key), &k)
	if err == nil && !found {
		err = ErrNone
	}
	return k, err
}

// Use notes that key started k. If another was quicker, first is what it started.
func (b *Book) Use(ctx context.Context, job, key string, k Key, keep time.Duration) (first Key, err error) {
	err = edit(ctx, b, keyKey(job, key), stamp{}, func(old *Key, found bool, _ time.Time) (time.Duration, error) {
		if found {
			first = *old
			return 0, errSame
		}
		*old, first = k, k
		return keep, nil
	})
	return first, err
}

// Unuse forgets that key started k: it did not, after all.
func (b *Book) Unuse(ctx context.Context, job, key string, k Key) error {
	return edit(ctx, b, keyKey(job, key), stamp{}, func(old *Key, found bool, _ time.Time) (time.Duration, error) {
		if !found || *old != k {
			return 0, errSame
		}
		return 0, nil
	})
}
