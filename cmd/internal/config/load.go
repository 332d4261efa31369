package config

import (
	"errors"
	"os"
	"reflect"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
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
	}
	c := &Config{}
	if root := d.parse(source); root != nil {
		d.value("", root, reflect.ValueOf(c).Elem())
	}
	if len(d.faults.List) == 0 || c.Jobs != nil {
		c.complete()
		c.check(d)
	}
	if len(d.faults.List) > 0 {
		d.faults.sort()
		return nil, d.faults
	}
	return c, nil
}

// parse returns the one document of a file, or nil after a mistake.
func (d *decoder) parse(source []byte) ast.Node {
	if len(source) > maxFile {
		d.fault("", "the file is longer than %d bytes", maxFile)
		return nil
	}
	file, err := parser.ParseBytes(source, 0)
	if err != nil {
		x := Fault{Text: err.Error()}
		var at yaml.Error
		if errors.As(err, &at) {
			x.Text = at.GetMessage()
			if t := at.GetToken(); t != nil {
				x.Line, x.Column = t.Position.Line, t.Position.Column
			}
		}
		d.faults.List = append(d.faults.List, x)
		return nil
	}
	var body ast.Node
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
	if body == nil {
		d.fault("", "the file is empty; it needs version: 1 and jobs:")
	}
	return body
}
