package config

import (
	"os"
	"reflect"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// maxFile is the longest file that is read.
const maxFile = 4 << 20

// Load reads and checks the file at path, with the variables of this process's
// environment. The error is a *Faults, or says why the file can't be read.
func Load(path string) (*Config, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, source, os.LookupEnv)
}

// Parse reads and checks a file's text; name is what it is called in mistakes.
func Parse(name string, source []byte, env func(string) (string, bool)) (*Config, error) {
	d := &decoder{
		faults: &Faults{File: name, Source: source},
		env:    env,
		where:  make(map[string]*token.Position),
		single: make(map[string]bool),
	}
	c := &Config{}
	root, whole := d.parse(source)
	if root != nil {
		d.value("", root, reflect.ValueOf(c).Elem())
	}
	if whole && (len(d.faults.List) == 0 || c.Jobs != nil) {
		c.complete()
		c.check(d)
	}
	if len(d.faults.List) > 0 {
		d.faults.sort()
		return nil, d.faults
	}
	return c, nil
}

// parse returns the one document of a file, or nil after a mistake. whole tells
// that nothing is missing but jobs.
func (d *decoder) parse(source []byte) (body ast.Node, whole bool) {
	if len(source) > maxFile {
		d.fault("", "the file is longer than %d bytes", maxFile)
		return nil, false
	}
	file, whole := d.read(source)
	if file == nil {
		return nil, false
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			d.at("document", doc.Body)
			d.fault("document", "one document is wanted, and here begins another")
		default:
			body = doc.Body
		}
	}
	if body == nil && len(d.faults.List) == 0 {
		d.fault("", "the file is empty; it needs version: 1 and jobs:")
	}
	return body, whole
}
