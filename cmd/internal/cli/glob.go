package cli

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A glob matches whole keys: * any characters (/ too), ? any one, [a-z] one of a
// class, [^a-z] one not of it, \ takes the next one as it is.
type glob struct {
	prefix string // every match begins with it
	match  *regexp.Regexp
}

// newGlob reads pattern; "" matches all.
func newGlob(pattern string) (*glob, error) {
	if pattern == "" {
		pattern = "*"
	}
	var re, prefix strings.Builder
	plain := true // no pattern yet: what was read is a prefix
	literal := func(s string) {
		re.WriteString(regexp.QuoteMeta(s))
		if plain {
			prefix.WriteString(s)
		}
	}
	for rest := pattern; rest != ""; {
		r := []rune(rest)[0]
		rest = rest[len(string(r)):]
		switch r {
		case '*':
			plain = false
			re.WriteString(".*")
		case '?':
			plain = false
			re.WriteString(".")
		case '[':
			plain = false
			class, n := classOf(rest)
			if n == 0 {
				return nil, usagef("the pattern %s has a [ without its ]", quote(pattern))
			}
			re.WriteString(class)
			rest = rest[n:]
		case '\\':
			if rest == "" {
				return nil, usagef("the pattern %s ends with a \\", quote(pattern))
			}
			next := string([]rune(rest)[0])
			literal(next)
			rest = rest[len(next):]
		default:
			literal(string(r))
		}
	}
	match, err := regexp.Compile(`(?s)\A` + re.String() + `\z`)
	if err != nil {
		return nil, usagef("the pattern %s has a class that can't be read", quote(pattern))
	}
	return &glob{prefix: prefix.String(), match: match}, nil
}

// classOf translates what follows a [, up to its ], and tells how long that is;
// 0: there is none.
func classOf(s string) (class string, n int) {
	var b strings.Builder
	b.WriteByte('[')
	if strings.HasPrefix(s, "^") || strings.HasPrefix(s, "!") {
		b.WriteByte('^')
		n++
	}
	for first := true; n < len(s); first = false {
		c := s[n]
		n++
		switch {
		case c == ']' && !first:
			b.WriteByte(']')
			return b.String(), n
		case c == '\\' && n < len(s):
			if s[n] < utf8.RuneSelf && !unicode.IsLetter(rune(s[n])) && !unicode.IsDigit(rune(s[n])) {
				b.WriteByte('\\')
			}
			b.WriteByte(s[n])
			n++
		case c == '\\' || c == '[' || c == ']' || c == '^' || c == '&' || c == '~':
			b.WriteString(`\` + string(rune(c)))
		default:
			b.WriteByte(c)
		}
	}
	return "", 0
}
