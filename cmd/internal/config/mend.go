package config

import (
	"errors"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxMends is how many blocks of a file are left out before it is given up.
const maxMends = 20

// read parses source. A job, or another block, that is no YAML is told of and left
// out, so that its mistake doesn't hide those of the others. whole tells that more
// than jobs were left out: what isn't there may be in what couldn't be read.
func (d *decoder) read(source []byte) (file *ast.File, whole bool) {
	lines := strings.Split(string(source), "\n")
	whole = true
	var noted []Fault
	for range maxMends {
		file, err := parser.ParseBytes([]byte(strings.Join(lines, "\n")), 0, parser.AllowDuplicateMapKey())
		if err == nil {
			d.faults.List = append(d.faults.List, noted...)
			return file, whole
		}
		noted = append(noted, unreadable(err, lines))
		from, to, job := blockOf(lines, noted[len(noted)-1].Line)
		if from == to {
			break
		}
		whole = whole && job
		for i := from; i < to; i++ {
			lines[i] = ""
		}
	}
	d.faults.List = append(d.faults.List, noted[0]) // those that follow may follow from it
	return nil, false
}

// unreadable is the parser's mistake as one of ours.
func unreadable(err error, lines []string) Fault {
	x := Fault{Text: err.Error()}
	var at yaml.Error
	if !errors.As(err, &at) {
		return x
	}
	x.Text = at.GetMessage()
	if t := at.GetToken(); t != nil {
		x.Line, x.Column = t.Position.Line, t.Position.Column
	}
	if x.Line >= 1 && x.Line <= len(lines) && wantsQuotes.MatchString(lines[x.Line-1]) {
		x.Text += "; put it in quotes"
	}
	return x
}

// wantsQuotes are a value or a key that YAML takes for something else.
var wantsQuotes = regexp.MustCompile(`^\s*(-\s+)?([^\s"'#][^:]*:\s+[@*%` + "`" + `&!|>]|\{[^{}:]*\}\S*:(\s|$))`)

// blockOf returns the lines, from and up to, of the job or the top-level key that
// line n is in, which counts from 1. Without such a block the two are equal.
func blockOf(lines []string, n int) (from, to int, job bool) {
	if n < 1 || n > len(lines) {
		return 0, 0, false
	}
	top := n - 1
	for ; top > 0 && indent(lines[top]) != 0; top-- {
	}
	from, to = top, end(lines, top, 0)
	if indent(lines[top]) != 0 {
		return 0, 0, false
	}
	if strings.HasPrefix(lines[top], "jobs:") && n-1 > top {
		in := top + 1
		for ; in < n-1 && indent(lines[in]) < 0; in++ {
		}
		depth := indent(lines[in])
		for from = n - 1; from > in && (indent(lines[from]) < 0 || indent(lines[from]) > depth); from-- {
		}
		return from, end(lines, from, depth), true
	}
	return from, to, false
}

// end returns where a block ends that begins at line i with an indent of depth.
func end(lines []string, i, depth int) int {
	for i++; i < len(lines) && (indent(lines[i]) < 0 || indent(lines[i]) > depth); i++ {
	}
	return i
}

// indent is how far a line is indented, and far for one with tabs, which YAML
// doesn't take; -1 if there is nothing on it.
func indent(line string) int {
	text := strings.TrimLeft(line, " \t")
	if text == "" || text == "\r" || text[0] == '#' {
		return -1
	}
	if strings.Contains(line[:len(line)-len(text)], "\t") {
		return len(line) + 1000
	}
	return len(line) - len(text)
}
