package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// A liveLine is a line of a terminal that is written anew, until something else
// is to be said. A nil one shows nothing.
type liveLine struct {
	w  *lockedWriter
	fd int
}

// newLiveLine returns nil if w isn't a terminal that can do it.
func newLiveLine(w io.Writer) *liveLine {
	l, ok := w.(*lockedWriter)
	if !ok || !isTerminal(l.w) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &liveLine{l, int(l.w.(*os.File).Fd())}
}

// show replaces the line by text, as far as there is room.
func (l *liveLine) show(text string) {
	width, _, err := term.GetSize(l.fd)
	if err != nil || width < 2 {
		width = 80
	}
	text = printable(text)
	if runes := []rune(text); len(runes) >= width {
		text = string(runes[:width-2]) + "…" // the last column may begin a new line
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.clearLocked()
	_, _ = io.WriteString(l.w.w, text)
	l.w.live = true
}

// clear takes the line away.
func (l *liveLine) clear() {
	if l == nil {
		return
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.clearLocked()
}

func (l *lockedWriter) clearLocked() {
	if l.live {
		_, _ = io.WriteString(l.w, "\r\x1b[K")
		l.live = false
	}
}
