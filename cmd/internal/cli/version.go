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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the stores that are built in",
		Long: `Print the version, and the stores that are built in. With --json it prints one
object with: version, revision, go, os, arch, stores.`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version, revision := "(devel)", ""
			if info, ok := debug.ReadBuildInfo(); ok {
				if info.Main.Version != "" {
					version = info.Main.Version
				}
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = s.Value
					}
				}
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), versionReport{version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH, driver.Schemes()})
			}
			if revision != "" {
				version += " " + revision
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "dibs %s %s %s/%s\nstores: %s\n", version,
				runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(driver.Schemes(), ", "))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// A versionReport is the JSON of version.
type versionReport struct {
	Version  string   `json:"version"`
	Revision string   `json:"revision,omitempty"`
	Go       string   `json:"go"`
	OS       string   `json:"os"`
	Arch     string   `json:"arch"`
	Stores   []string `json:"stores"`
}

// none refuses arguments.
func none(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected %s; see %s --help", quote(args[0]), cmd.CommandPath())
	}
	return nil
}
