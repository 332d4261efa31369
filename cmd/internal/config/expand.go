package config

import (
	"fmt"
	"strings"
)

// expand fills in ${NAME} and ${NAME:-default}; $$ stands for one $. A variable
// that is not set and has no default is an error: an empty URL or path would be
// found much later.
func expand(text string, env func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i+1 == len(text) {
			return b.String() + text, nil
		}
		b.WriteString(text[:i])
		text = text[i:]
		switch {
		case text[1] == '$':
			b.WriteByte('$')
			text = text[2:]
		case text[1] != '{':
			b.WriteByte('$')
			text = text[1:]
		default:
			inner, rest, ok := strings.Cut(text[2:], "}")
			if !ok {
				return "", fmt.Errorf("%q has no closing }", text)
			}
			name, fallback, has := strings.Cut(inner, ":-")
			value, set := env(name)
			switch {
			case (!set || value == "") && has:
				value = fallback
			case !set:
				return "", fmt.Errorf("the environment has no variable %s; set it, or write ${%s:-default}", name, name)
			}
			b.WriteString(value)
			text = rest
		}
	}
}
