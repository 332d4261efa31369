package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/driver"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the stores that are built in",
		Args:  none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version, revision := "(devel)", ""
			if info, ok := debug.ReadBuildInfo(); ok {
				if info.Main.Version != "" {
					version = info.Main.Version
				}
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = " " + s.Value
					}
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "dibs %s%s %s %s/%s\nstores: %s\n", version, revision,
				runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(driver.Schemes(), ", "))
			return err
		},
	}
}

// none refuses arguments.
func none(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected %s; see %s --help", quote(args[0]), cmd.CommandPath())
	}
	return nil
}
