package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// A decoder fills values from a parsed file and goes on after a mistake: the
// library's own strict mode stops at the first.
type decoder struct {
	faults *Faults
	env    func(string) (string, bool)
	where  map[string]*token.Position // of every key
	single map[string]bool            // the lists that were written as one text
}

// fault notes a mistake at a path.
func (d *decoder) fault(path, format string, args ...any) {
	x := Fault{Path: path, Text: fmt.Sprintf(format, args...)}
	for at := path; at != ""; {
		if p := d.where[at]; p != nil {
			x.Line, x.Column = p.Line, p.Column
			break
		}
		i := strings.LastIndexAny(at, "\x00")
		if i < 0 {
			break
		}
		at = at[:i]
	}
	x.Path = strings.ReplaceAll(x.Path, "\x00", ".")
	d.faults.List = append(d.faults.List, x)
}

// under is the path of a key below another. Ids of jobs have dots.
func under(path, key string) string {
	if path == "" {
		return key
	}
	return path + "\x00" + key
}

func (d *decoder) at(path string, n ast.Node) {
	if n != nil && n.GetToken() != nil {
		d.where[path] = n.GetToken().Position
	}
}

var unmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// value fills v from n.
func (d *decoder) value(path string, n ast.Node, v reflect.Value) {
	switch x := n.(type) {
	case *ast.NullNode:
		return
	case *ast.AnchorNode:
		d.value(path, x.Value, v)
		return
	case *ast.TagNode, *ast.AliasNode, *ast.MergeKeyNode:
		d.at(path, n)
		d.fault(path, "tags, aliases and merge keys are not allowed; write the value out")
		return
	}
	if reflect.PointerTo(v.Type()).Implements(unmarshaler) {
		text, ok := d.scalar(path, n)
		if !ok {
			return
		}
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			d.fault(path, "%v, not %q", err, text)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, n, v.Elem())
	case reflect.Struct:
		d.object(path, n, v)
	case reflect.Map:
		d.table(path, n, v)
	case reflect.Slice:
		d.list(path, n, v)
	default:
		d.plain(path, n, v)
	}
}

// entries returns the keys and values of a mapping, each key once.
func (d *decoder) entries(path string, n ast.Node) []*ast.MappingValueNode {
	var all []*ast.MappingValueNode
	switch x := n.(type) {
	case *ast.MappingNode:
		all = x.Values
	case *ast.MappingValueNode:
		all = []*ast.MappingValueNode{x}
	default:
		d.fault(path, "want a mapping (key: value), not %s", kindOf(n))
	}
	lines := make(map[string]int)
	return slices.DeleteFunc(slices.Clone(all), func(e *ast.MappingValueNode) bool {
		key, pos := keyOf(e), e.Key.GetToken().Position
		first, twice := lines[key]
		if !twice {
			lines[key] = pos.Line
			return false
		}
		at := under(path, key)
		d.where[at] = pos
		d.fault(at, "it is there already, in line %d", first)
		return true
	})
}

func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	}
	return strconv.Quote(n.GetToken().Value)
}

func keyOf(e *ast.MappingValueNode) string {
	if s, ok := e.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return e.Key.GetToken().Value
}

func (d *decoder) object(path string, n ast.Node, v reflect.Value) {
	fields := make(map[string]reflect.Value)
	var names []string
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("yaml"); name != "" && name != "-" {
			fields[name] = v.Field(i)
			names = append(names, name)
		}
	}
	for _, e := range d.entries(path, n) {
		key := keyOf(e)
		at := under(path, key)
		d.at(at, e.Key)
		field, known := fields[key]
		if !known {
			d.fault(at, "unknown key%s", suggest(key, names))
			continue
		}
		d.value(at, e.Value, field)
	}
}

func (d *decoder) table(path string, n ast.Node, v reflect.Value) {
	entries := d.entries(path, n)
	v.Set(reflect.MakeMapWithSize(v.Type(), len(entries)))
	for _, e := range entries {
		key := keyOf(e)
		at := under(path, key)
		d.at(at, e.Key)
		one := reflect.New(v.Type().Elem()).Elem()
		if one.Kind() == reflect.Pointer {
			one.Set(reflect.New(one.Type().Elem()))
		}
		d.value(at, e.Value, one)
		v.SetMapIndex(reflect.ValueOf(key), one)
	}
}

func (d *decoder) list(path string, n ast.Node, v reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		if v.Type() == reflect.TypeFor[List]() {
			text, ok := d.scalar(path, n)
			if !ok {
				text = "?" // its mistake is noted: it isn't missing besides
			}
			v.Set(reflect.ValueOf(List{text}))
			d.single[path] = ok
			return
		}
		d.fault(path, "want a list, not %s", kindOf(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, one := range seq.Values {
		at := under(path, strconv.Itoa(i))
		d.at(at, one)
		d.value(at, one, v.Index(i))
	}
}

func (d *decoder) plain(path string, n ast.Node, v reflect.Value) {
	text, ok := d.scalar(path, n)
	if !ok {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int:
		i, err := strconv.Atoi(text)
		if err != nil {
			d.fault(path, "want a whole number, not %q", text)
		} else if i == 0 { // it would be taken for a key that isn't there
			d.fault(path, "want 1 or more, not %q", text)
			i = 1
		}
		v.SetInt(int64(i))
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			d.fault(path, "want a number, not %q", text)
		} else if f == 0 {
			d.fault(path, "want 1 or more, not %q", text)
			f = 1
		}
		v.SetFloat(f)
	case reflect.Bool:
		if text != "true" && text != "false" {
			d.fault(path, "want true or false, not %q", text)
		}
		v.SetBool(text == "true")
	}
}

// scalar returns a value's text with variables of the environment filled in:
// after the file was parsed, so that a value can't change its structure.
func (d *decoder) scalar(path string, n ast.Node) (string, bool) {
	var text string
	switch x := n.(type) {
	case *ast.StringNode:
		text = x.Value
	case *ast.LiteralNode:
		text = x.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	default:
		d.fault(path, "want a single value, not %s", kindOf(n))
		return "", false
	}
	text, err := expand(text, d.env)
	if err != nil {
		d.fault(path, "%v", err)
		return "", false
	}
	return text, true
}

// suggest guesses which key was meant.
func suggest(key string, names []string) string {
	slices.Sort(names)
	for _, name := range names {
		if distance(key, name) <= 2 {
			return "; did you mean " + name + "?"
		}
	}
	return "; known here: " + strings.Join(names, ", ")
}

// distance is the number of edits from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0]++
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost = 1 + min(last, row[j], row[j+1])
			}
			last, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
