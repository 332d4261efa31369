package executor

import "sync"

// A Tail keeps the end of what is written to it. It never blocks the writer. Its
// methods may be called from any goroutine.
type Tail struct {
	max int

	mu    sync.Mutex // guards what follows
	data  []byte
	start uint64 // how many bytes came before data
}

// NewTail keeps the last n bytes.
func NewTail(n int) *Tail { return &Tail{max: n} }

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	// Cut when twice as much is there: each byte is then copied once at most.
	if over := len(t.data) - t.max; over > t.max {
		t.cutLocked(over)
	}
	return len(p), nil
}

func (t *Tail) cutLocked(n int) {
	t.start += uint64(n)
	t.data = append(t.data[:0], t.data[n:]...)
}

// End returns what is kept, and how many bytes came before it.
func (t *Tail) End() (start uint64, data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if over := len(t.data) - t.max; over > 0 {
		t.cutLocked(over)
	}
	return t.start, append([]byte(nil), t.data...)
}
