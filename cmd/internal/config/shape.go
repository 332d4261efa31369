package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// A shape is a job's id in segments; those in braces are parameters.
type shape struct {
	segments []string
	names    []string                  // of the parameters, in order
	allowed  map[string]*regexp.Regexp // what each parameter may be
}

// A Value is what a parameter may be unless the job says otherwise: one that is
// no option, no path, and no other id when it is put into one.
const Value = `^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}$`

var (
	anyValue  = regexp.MustCompile(Value)
	literal   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}$`)
	paramName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
)

// newShape reads a job's id. problems tells what is wrong with it.
func newShape(id string, params map[string]string) (s shape, problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	s.allowed = make(map[string]*regexp.Regexp)
	s.segments = strings.Split(id, "/")
	for _, seg := range s.segments {
		name, ok := braced(seg)
		switch {
		case !ok && !literal.MatchString(seg):
			bad("the segment %q of the id: want letters, digits and _ . : @ -, or a parameter in braces", seg)
		case ok && !paramName.MatchString(name):
			bad("the parameter %q: want a name such as tenant", seg)
		case ok && slices.Contains(s.names, name):
			bad("the parameter %q is there twice", seg)
		case ok:
			s.names = append(s.names, name)
			s.allowed[name] = anyValue
		}
	}
	for name, text := range params {
		re, err := regexp.Compile(text) // as it is: "a)|(b" must not open the frame
		if err == nil {
			re, err = regexp.Compile(`\A(?:` + text + `)\z`)
		}
		switch {
		case !paramName.MatchString(name):
			bad("the parameter %q: want a name such as tenant", name)
		case err != nil:
			bad("the expression of the parameter %s: %v", name, err)
		default:
			s.allowed[name] = re
		}
	}
	return s, problems
}

// braced returns what is within the braces.
func braced(seg string) (string, bool) {
	if len(seg) > 2 && seg[0] == '{' && seg[len(seg)-1] == '}' {
		return seg[1 : len(seg)-1], true
	}
	return "", false
}

// match returns the parameters that make the shape id. A segment is a parameter
// only if it may be a part of an id, whatever the job allows besides.
func (s shape) match(id string) (map[string]string, bool) {
	got := strings.Split(id, "/")
	if len(got) != len(s.segments) {
		return nil, false
	}
	params := make(map[string]string)
	for i, seg := range s.segments {
		name, ok := braced(seg)
		switch {
		case !ok && seg != got[i]:
			return nil, false
		case ok && (!anyValue.MatchString(got[i]) || !s.allowed[name].MatchString(got[i])):
			return nil, false
		case ok:
			params[name] = got[i]
		}
	}
	return params, true
}

// literals is how many segments are no parameters: the more, the sooner it is
// tried.
func (s shape) literals() int { return len(s.segments) - len(s.names) }

// same tells whether two shapes take the same ids: not one that the one takes
// would be the other's.
func (s shape) same(other shape) bool {
	kinds := func(s shape) (kinds []string) {
		for _, seg := range s.segments {
			if name, ok := braced(seg); ok && s.allowed[name] != nil {
				seg = "{" + s.allowed[name].String()
			}
			kinds = append(kinds, seg)
		}
		return kinds
	}
	return slices.Equal(kinds(s), kinds(other))
}

// fill puts parameters into a name with braces.
func fill(text string, params map[string]string) string {
	for name, value := range params {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// A Target is a job as it is run: with an id and parameters of its own.
type Target struct {
	*Job
	Name   string // the id, parameters filled in
	Locked string // the name of its lock
	Params map[string]string
}

// Find returns what id stands for: the job of that id, or the most literal
// pattern that it fits.
func (c *Config) Find(id string) (Target, bool) {
	if j := c.Jobs[id]; j != nil && !j.Pattern() {
		return Target{Job: j, Name: id, Locked: j.Lock, Params: map[string]string{}}, true
	}
	for _, j := range c.patterns {
		if params, ok := j.shape.match(id); ok {
			return Target{Job: j, Name: id, Locked: fill(j.Lock, params), Params: params}, true
		}
	}
	return Target{}, false
}

// With returns the target with parameters that came with a trigger: those that
// the job declares and its id doesn't give. The error says which may not be.
func (t Target) With(given map[string]string) (Target, error) {
	params := make(map[string]string, len(t.Params)+len(given))
	for name, re := range t.shape.allowed {
		if _, ok := given[name]; !ok && t.Params[name] == "" && !re.MatchString("") {
			return t, fmt.Errorf("the parameter %q is missing: send {\"params\": {%q: ...}}", name, name)
		}
		params[name] = ""
	}
	maps.Copy(params, t.Params)
	for name, value := range given {
		re := t.shape.allowed[name]
		switch {
		case re == nil:
			return t, fmt.Errorf("the job has no parameter %q", name)
		case t.Params[name] != "":
			return t, fmt.Errorf("the parameter %q is part of the job's id", name)
		case len(value) > 1024 || !re.MatchString(value):
			return t, fmt.Errorf("the parameter %q may not be %.64q", name, value)
		}
		params[name] = value
	}
	if err := driver.CheckName(t.Locked); err != nil {
		return t, fmt.Errorf("the parameters make no name of a lock: %w", err)
	}
	t.Params = params
	return t, nil
}

// Pattern tells whether the job's id has parameters.
func (j *Job) Pattern() bool { return len(j.shape.names) > 0 }
