package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
	} else if owners := ownersOf(cmd.Root(), name); owners != nil {
		hints = append(hints, fmt.Sprintf("%s is a flag of: %s", name, strings.Join(owners, ", ")))
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

// ownersOf returns the commands that have the flag.
func ownersOf(root *cobra.Command, name string) []string {
	var owners []string
	for _, c := range root.Commands() {
		if lookup(c, name) != nil {
			owners = append(owners, c.CommandPath())
		}
	}
	return owners
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
