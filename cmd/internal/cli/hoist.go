package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

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
