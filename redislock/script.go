package redislock

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"regexp"
	"strings"
)

// A script is one atomic step on the server.
type script struct {
	text, sha string
	plain     *script // the same for the plain layout
	sharded   *script // and for a cluster, where messages stay with the slot
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
	s := build(strings.Replace(text, "--#lib\n", lib+line, 1))
	s.plain = build(strings.Replace(text, "--#lib\n", lib+line+plain, 1))
	s.sharded, s.plain.sharded = s.forSlots(), s.plain.forSlots()
	return s
}

// forSlots publishes by SPUBLISH, which a cluster does not send to every node.
func (s *script) forSlots() *script {
	text := strings.ReplaceAll(s.text, "'PUBLISH'", "'SPUBLISH'")
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}

func build(text string) *script {
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
	text = flags + "\n" + indents.ReplaceAllString(used(comments.ReplaceAllString(text, "")), "")
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}

// used leaves out of text the functions that nothing in it names.
func used(text string) string {
	for {
		before := text
		text = functions.ReplaceAllStringFunc(text, func(f string) string {
			name := functions.FindStringSubmatch(f)[1]
			if len(regexp.MustCompile(`\b`+name+`\b`).FindAllStringIndex(before, 2)) == 2 {
				return f
			}
			return ""
		})
		if text == before {
			return text
		}
	}
}

var (
	functions = regexp.MustCompile(`(?ms)^local function (\w+)\([^\n]*?(?: end|\n.*?^end)\n`)
	constants = regexp.MustCompile(`(?m)^local ([A-Z]+(?:, [A-Z]+)*) = (\d+(?:, \d+)*)(?: +--.*)?$`)
	capitals  = regexp.MustCompile(`\b[A-Z]+\b`)
	comments  = regexp.MustCompile(`(?m)^ *--.*\n| +-- .*$`)
	indents   = regexp.MustCompile(`(?m)^\s+`)
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
