package config

import (
	"fmt"
	"slices"
	"strings"
)

// A Fault is one mistake, and where it is.
type Fault struct {
	Path         string // of the key, such as jobs.backup.ttl
	Text         string
	Line, Column int // from 1; 0: the file as a whole
}

// Faults are all mistakes of a file, in its order. It is an error.
type Faults struct {
	File   string
	Source []byte
	List   []Fault
}

// Error shows every mistake with its line and a caret.
func (f *Faults) Error() string {
	lines := strings.Split(string(f.Source), "\n")
	var b strings.Builder
	for i, x := range f.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		if x.Line < 1 || x.Line > len(lines) {
			fmt.Fprintf(&b, "%s: %s", f.File, x.text())
			continue
		}
		line := strings.ReplaceAll(strings.TrimRight(lines[x.Line-1], "\r"), "\t", " ")
		fmt.Fprintf(&b, "%s:%d:%d: %s\n", f.File, x.Line, x.Column, x.text())
		fmt.Fprintf(&b, "%5d | %s\n", x.Line, line)
		fmt.Fprintf(&b, "      | %s^", strings.Repeat(" ", max(x.Column-1, 0)))
	}
	return b.String()
}

func (x Fault) text() string {
	if x.Path == "" {
		return x.Text
	}
	return x.Path + ": " + x.Text
}

func (f *Faults) sort() {
	slices.SortStableFunc(f.List, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}
