package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var errTwice = errors.New("it is given twice")

// A duration is a flag whose value must be positive. Given twice it is refused:
// one of the two was meant for something else.
type duration struct {
	time.Duration
	given bool
}

func (d *duration) Type() string { return "DUR" }

func (d *duration) String() string {
	if d.Duration == 0 {
		return ""
	}
	return short(d.Duration)
}

func (d *duration) Set(text string) error {
	if d.given {
		return errTwice
	}
	v, err := parseDuration(text)
	if err != nil {
		return err
	}
	d.Duration, d.given = v, true
	return nil
}

// parseDuration takes whole milliseconds and more: no store can count less.
func parseDuration(text string) (time.Duration, error) {
	v, err := time.ParseDuration(text)
	switch {
	case err != nil:
		if _, number := strconv.ParseFloat(text, 64); number == nil {
			return 0, fmt.Errorf("a duration needs a unit, such as %ss or %sm", text, text)
		}
		return 0, errors.New("want a duration such as 1500ms, 30s, 5m or 1h30m, of at most 290 years")
	case v <= 0:
		return 0, errors.New("it must be positive")
	case v < time.Millisecond:
		return 0, errors.New("it must be at least 1ms")
	}
	return v, nil
}

// A wait is the flag --wait[=DUR].
type wait struct {
	duration // 0: for ever
	wanted   bool
}

// waitForever is what pflag sets for a --wait without a value.
const waitForever = "forever"

// Type is empty, so that the help shows that a value needs its =.
func (w *wait) Type() string   { return "" }
func (w *wait) String() string { return "" }

func (w *wait) Set(text string) error {
	if w.wanted {
		return errTwice
	}
	w.wanted = true
	if text == waitForever {
		return nil
	}
	return w.duration.Set(text)
}

// A text is a flag that may be given once.
type text struct {
	value string
	given bool
	kind  string
}

func (t *text) Type() string   { return t.kind }
func (t *text) String() string { return t.value }

func (t *text) Set(value string) error {
	if t.given {
		return errTwice
	}
	t.value, t.given = value, true
	return nil
}

// A number is a flag for a whole number within bounds, given once.
type number struct {
	value, least, most int
	given              bool
}

func (n *number) Type() string { return "N" }

func (n *number) String() string {
	if n.value == 0 {
		return ""
	}
	return strconv.Itoa(n.value)
}

func (n *number) Set(text string) error {
	if n.given {
		return errTwice
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < n.least || v > n.most {
		return fmt.Errorf("want a whole number from %d to %d", n.least, n.most)
	}
	n.value, n.given = v, true
	return nil
}

// flagError turns a complaint of the flag parser into a failure that helps.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usagef("%v; nothing was run", err)
	}
	name := "--" + unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		name = "-" + unknown.GetSpecifiedName()
	}
	return usagef("unknown flag %s; nothing was run\n%s", name, suggestFlag(cmd, name))
}

// suggestFlag says what may have been meant by a flag that cmd doesn't know.
func suggestFlag(cmd *cobra.Command, name string) string {
	var hints []string
	if near := nearest(cmd, name); near != "" {
		hints = append(hints, fmt.Sprintf("did you mean %s?", near))
	} else if owner := ownerOf(cmd.Root(), name); owner != nil {
		hints = append(hints, fmt.Sprintf("%s is a flag of: %s", name, owner.CommandPath()))
	}
	if cmd.Name() == "run" {
		hints = append(hints, fmt.Sprintf("if %s belongs to the command that is to run, put -- before that command: dibs run KEY -- CMD %s", name, name))
	}
	if len(hints) == 0 {
		return "see " + cmd.CommandPath() + " --help"
	}
	return strings.Join(hints, "\n")
}

// nearest returns the flag of cmd that is at most two edits away, or "".
func nearest(cmd *cobra.Command, name string) string {
	if !strings.HasPrefix(name, "--") {
		return ""
	}
	best, at := "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name[2:], f.Name); d < at && d < len(f.Name)-1 {
			best, at = "--"+f.Name, d
		}
	})
	return best
}

// ownerOf returns the command that has the flag.
func ownerOf(root *cobra.Command, name string) *cobra.Command {
	for _, c := range root.Commands() {
		if lookup(c, name) != nil {
			return c
		}
	}
	return nil
}

func lookup(cmd *cobra.Command, name string) *pflag.Flag {
	if long, ok := strings.CutPrefix(name, "--"); ok {
		return cmd.Flags().Lookup(long)
	}
	if len(name) == 2 {
		return cmd.Flags().ShorthandLookup(name[1:])
	}
	return nil
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, last+1)
		}
	}
	return row[len(b)]
}

// hoist moves the command's name before the flags that were put in front of it.
// Cobra looks for it too, but takes it for the value of a flag that only the
// command knows: dibs --wait run KEY.
func hoist(root *cobra.Command, args []string) []string {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return args
		case !strings.HasPrefix(arg, "-"):
			for _, c := range root.Commands() {
				if c.Name() == arg {
					return slices.Concat([]string{arg}, args[:i], args[i+1:])
				}
			}
			return args
		case takesValue(root, arg):
			i++
		}
	}
	return args
}

// takesValue tells whether the argument after arg is its value.
func takesValue(root *cobra.Command, arg string) bool {
	for _, c := range root.Commands() {
		if f := lookup(c, arg); f != nil {
			return f.NoOptDefVal == ""
		}
	}
	return false
}
