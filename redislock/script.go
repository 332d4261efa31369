package redislock

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
)

// A script is one atomic step on the server. It is made when it is first used,
// since most programs use a few.
type script struct {
	make    func() (text string)
	plain   *script // the same for the plain layout
	sharded *script // and for a cluster, where messages stay with the slot

	once      sync.Once
	made, sum string
}

// text is what the server runs.
func (s *script) text() string {
	s.once.Do(func() {
		s.made = s.make()
		sum := sha1.Sum([]byte(s.made))
		s.sum = hex.EncodeToString(sum[:])
	})
	return s.made
}

// sha is what the server calls it.
func (s *script) sha() string {
	s.text()
	return s.sum
}

var (
	//go:embed lua/lib.lua
	lib string
	//go:embed lua/line.lua
	line string
	//go:embed lua/plain.lua
	plain string
)

// newScript makes a script of a file's text, with the rules of a name in place
// of its line "--#lib".
//
// A script is run from its first line at every call, so whatever it defines
// costs time on the server each time. Therefore the constants, lines such as
// "local HELD, HANDED = 1, 2", are put in here; they alone made the rules twice
// as slow. The functions that a script does not use, comments and indents go too.
// The first line, with the flags, has to stay the first.
func newScript(text string) *script {
	with := func(rules string) *script {
		s := &script{make: func() string { return build(strings.Replace(text, "--#lib\n", rules, 1)) }}
		s.sharded = s.forSlots()
		return s
	}
	s := with(lib + line)
	s.plain = with(lib + line + plain)
	return s
}

// forSlots publishes by SPUBLISH, which a cluster does not send to every node.
func (s *script) forSlots() *script {
	return &script{make: func() string { return strings.ReplaceAll(s.text(), "'PUBLISH'", "'SPUBLISH'") }}
}

func build(text string) string {
	flags, text, _ := strings.Cut(text, "\n")
	values := make(map[string]string)
	for _, line := range constants.FindAllStringSubmatch(text, -1) {
		numbers := strings.Split(line[2], ", ")
		for i, name := range strings.Split(line[1], ", ") {
			values[name] = numbers[i]
		}
	}
	text = constants.ReplaceAllString(text, "")
	text = capitals.ReplaceAllStringFunc(text, func(word string) string {
		if v, ok := values[word]; ok {
			return v
		}
		return word
	})
	return flags + "\n" + indents.ReplaceAllString(used(comments.ReplaceAllString(text, "")), "")
}

// used leaves out of text the functions that nothing in it names.
func used(text string) string {
	type function struct {
		from, to int
		name     string
	}
	var all []function
	for _, at := range functions.FindAllStringSubmatchIndex(text, -1) {
		all = append(all, function{at[0], at[1], text[at[2]:at[3]]})
	}
	names := make(map[string]int) // how often each word is there
	count := func(text string, by int) {
		for _, word := range identifiers.FindAllString(text, -1) {
			names[word] += by
		}
	}
	count(text, 1)
	gone := make([]bool, len(all))
	for again := true; again; {
		again = false
		for i, f := range all {
			if !gone[i] && names[f.name] == 1 { // by its definition alone
				gone[i], again = true, true
				count(text[f.from:f.to], -1)
			}
		}
	}
	var out strings.Builder
	at := 0
	for i, f := range all {
		if gone[i] {
			out.WriteString(text[at:f.from])
			at = f.to
		}
	}
	out.WriteString(text[at:])
	return out.String()
}

var (
	functions   = regexp.MustCompile(`(?ms)^local function (\w+)\([^\n]*?(?: end|\n.*?^end)\n`)
	constants   = regexp.MustCompile(`(?m)^local ([A-Z]+(?:, [A-Z]+)*) = (\d+(?:, \d+)*)(?: +--.*)?$`)
	identifiers = regexp.MustCompile(`\w+`)
	capitals    = regexp.MustCompile(`\b[A-Z]+\b`)
	comments    = regexp.MustCompile(`(?m)^ *--.*\n| +-- .*$`)
	indents     = regexp.MustCompile(`(?m)^\s+`)
)

var (
	//go:embed lua/acquire.lua
	acquireText string
	//go:embed lua/acquire_all.lua
	acquireAllText string
	//go:embed lua/renew.lua
	renewText string
	//go:embed lua/release.lua
	releaseText string
	//go:embed lua/revoke.lua
	revokeText string
	//go:embed lua/list.lua
	listText string
	//go:embed lua/record_get.lua
	recordGetText string
	//go:embed lua/record_put.lua
	recordPutText string
	//go:embed lua/record_delete.lua
	recordDeleteText string
)

var (
	acquireScript      = newScript(acquireText)
	acquireAllScript   = newScript(acquireAllText)
	renewScript        = newScript(renewText)
	releaseScript      = newScript(releaseText)
	revokeScript       = newScript(revokeText)
	listScript         = newScript(listText)
	recordGetScript    = newScript(recordGetText)
	recordPutScript    = newScript(recordPutText)
	recordDeleteScript = newScript(recordDeleteText)
)
