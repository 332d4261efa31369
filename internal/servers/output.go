package servers

import (
	"strings"
	"sync"
)

// keptOutput is how many of a server's last bytes are kept for error messages.
const keptOutput = 64 << 10

// output keeps the end of what a server prints and tells when a line that it
// waits for has come.
type output struct {
	ready chan struct{} // closed when the line has come
	line  string        // what marks that line

	mu   sync.Mutex // guards text, seen
	text []byte
	seen bool
}

func newOutput(line string) *output {
	return &output{ready: make(chan struct{}), line: line}
}

// Write never fails: a server isn't to be held up by its log.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	if !o.seen && strings.Contains(string(o.text), o.line) {
		o.seen = true
		close(o.ready)
	}
	if extra := len(o.text) - keptOutput; extra > 0 {
		o.text = append(o.text[:0], o.text[extra:]...)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// portTaken reports whether the server said that somebody else has its port.
func (o *output) portTaken() bool {
	return strings.Contains(strings.ToLower(o.String()), "address already in use")
}
