package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func readDocs(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Every command and flag is in docs/cli.md, and nothing is that is not there.
func TestDocsHaveEveryFlag(t *testing.T) {
	t.Parallel()
	documented := make(map[string][]string) // by command
	row := regexp.MustCompile("^\\| `-.*?\\| ")
	flag := regexp.MustCompile(`--([a-z-]+)`)
	section := ""
	for line := range strings.Lines(readDocs(t)) {
		if strings.HasPrefix(line, "#") {
			section, _ = strings.CutPrefix(strings.TrimSpace(line), "### dibs ")
			if strings.HasPrefix(section, "#") {
				section = ""
			} else {
				documented[section] = nil
			}
		}
		if section != "" && row.MatchString(line) {
			cell, _, _ := strings.Cut(line[2:], " | ")
			for _, m := range flag.FindAllStringSubmatch(cell, -1) {
				documented[section] = append(documented[section], m[1])
			}
		}
	}
	for _, c := range newRoot().Commands() {
		var flags []string
		for _, c := range append(c.Commands(), c) {
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden && f.Name != "help" {
					flags = append(flags, f.Name)
				}
			})
		}
		got, ok := documented[c.Name()]
		delete(documented, c.Name())
		if !ok {
			t.Errorf("docs/cli.md has no section: ### dibs %s", c.Name())
			continue
		}
		for _, f := range flags {
			if !slices.Contains(got, f) {
				t.Errorf("docs/cli.md: the section dibs %s lacks --%s", c.Name(), f)
			}
		}
		for _, f := range got {
			if !slices.Contains(flags, f) {
				t.Errorf("docs/cli.md: dibs %s has no flag --%s", c.Name(), f)
			}
		}
	}
	for name := range documented {
		t.Errorf("docs/cli.md: there is no command dibs %s", name)
	}
}

// Every command line in the fenced blocks of docs/cli.md can be parsed.
func TestDocsCanBeTyped(t *testing.T) {
	t.Parallel()
	n := 0
	for _, block := range fenced(readDocs(t)) {
		if block.kind == "json" {
			continue
		}
		for _, args := range commandsIn(t, block.text) {
			n++
			if err := parses(args); err != nil {
				t.Errorf("dibs %s: %v", strings.Join(args, " "), err)
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d command lines were found", n)
	}
}

type docBlock struct{ kind, text string }

func fenced(doc string) (blocks []docBlock) {
	parts := strings.Split(doc, "\n```")
	for i := 1; i < len(parts); i += 2 {
		kind, text, _ := strings.Cut(parts[i], "\n")
		blocks = append(blocks, docBlock{kind, text})
	}
	return blocks
}

var (
	docArray  = regexp.MustCompile(`\["dibs".*\]|CMD (\[.*\])`)
	docLine   = regexp.MustCompile(`(?:^|[\s;&|(]|/bin/)dibs ((?:\S).*)`)
	docJoiner = strings.NewReplacer("\\\n", " ")
)

// commandsIn finds the arguments of each dibs in a shell's lines, in a JSON array,
// and in the words of another dibs.
func commandsIn(t *testing.T, text string) (all [][]string) {
	t.Helper()
	var words []string
	for _, m := range docArray.FindAllStringSubmatch(text, -1) {
		var more []string
		if err := json.Unmarshal([]byte(strings.TrimPrefix(m[0], "CMD ")), &more); err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
		words = append(words, more...) // an entry point and its command are one
	}
	if words != nil {
		return [][]string{words[1:]}
	}
	for line := range strings.Lines(docJoiner.Replace(text)) {
		m := docLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		words := shellSplit(m[1])
		all = append(all, words)
		for _, w := range words {
			all = append(all, commandsIn(t, w)...)
		}
	}
	return all
}

// shellSplit cuts a command line into words as a shell does, up to an operator.
func shellSplit(line string) (words []string) {
	var word strings.Builder
	in, any := rune(0), false
	flush := func() {
		if any {
			words = append(words, word.String())
		}
		word.Reset()
		any = false
	}
	for _, r := range line {
		switch {
		case in != 0 && r == in:
			in = 0
		case in != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			in, any = r, true
		case r == ' ' || r == '\t' || r == '\n':
			flush()
		case strings.ContainsRune("|;&<>)", r) || r == '#' && !any:
			flush()
			return words
		default:
			word.WriteRune(r)
			any = true
		}
	}
	flush()
	return words
}

// parses tells what is wrong with a command line, without doing anything.
func parses(args []string) error {
	root := newRoot()
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	cmd, rest, err := root.Find(hoist(root, args))
	if err != nil {
		return err
	}
	if cmd == root {
		return errors.New("no such command")
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return shape(cmd, cmd.Flags().Args())
}

// shape checks the number of arguments.
func shape(cmd *cobra.Command, args []string) error {
	n := len(args)
	switch cmd.Name() {
	case "run", "elect", "once", "limit":
		before, dash := 1, cmd.ArgsLenAtDash()
		switch {
		case cmd.Name() == "limit":
			before = 2
		case cmd.Flags().Changed("key"):
			before = 0
		case cmd.Flags().Changed("forget"):
			if dash >= 0 || n != 1 {
				return errors.New("want one key and no command")
			}
			return nil
		}
		if dash != before || n <= before {
			return fmt.Errorf("want %d arguments before -- and a command after it", before)
		}
	case "show", "force-unlock", "completion":
		if n != 1 {
			return fmt.Errorf("want one argument, not %d", n)
		}
	case "fence":
		if n != 3 {
			return fmt.Errorf("want check KEY N")
		}
	case "ls", "watch", "history":
		if n > 1 {
			return fmt.Errorf("want at most one argument, not %d", n)
		}
	case "store":
		return errors.New("want store init")
	case "doctor", "version", "init":
		if n != 0 {
			return fmt.Errorf("want no argument, not %d", n)
		}
	}
	return nil
}

// Every field of every JSON that the command prints is named in docs/cli.md, and
// the examples there have no other.
func TestDocsHaveEveryField(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for _, v := range []any{keyStatus{}, change{}, hold{}, unlocked{}, fenceReport{}, diagnosis{}, setupReport{}, nodeReport{}, versionReport{}, report{}, event{}} {
		jsonFields(reflect.TypeOf(v), known)
	}
	doc := readDocs(t)
	for name := range known {
		if !strings.Contains(doc, "`"+name+"`") && !strings.Contains(doc, `"`+name+`":`) {
			t.Errorf("docs/cli.md does not name the field %s", name)
		}
	}
	for _, b := range fenced(doc) {
		if b.kind != "json" {
			continue
		}
		for line := range strings.Lines(strings.TrimSpace(b.text)) {
			var v any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Errorf("%v: %s", err, line)
			}
			for _, name := range jsonKeys(v) {
				if !known[name] {
					t.Errorf("docs/cli.md: nothing prints the field %s", name)
				}
			}
		}
	}
}

// jsonFields collects the names that t has in JSON.
func jsonFields(t reflect.Type, into map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		jsonFields(t.Elem(), into)
	case reflect.Struct:
		for f := range t.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				into[name] = true
				jsonFields(f.Type, into)
			}
		}
	}
}

// jsonKeys lists the names in a JSON value.
func jsonKeys(v any) (names []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			names = append(names, jsonKeys(e)...)
		}
	case map[string]any:
		for name, e := range v {
			names = append(append(names, name), jsonKeys(e)...)
		}
	}
	return names
}
