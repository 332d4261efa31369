package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/cmd/internal/config"
)

// configFile is the flag that says where the runner's configuration is.
func configFile(cmd *cobra.Command) *text {
	c := &text{kind: "FILE", value: "dibs.yaml"}
	cmd.Flags().VarP(c, "config", "c", "the configuration; default dibs.yaml, or DIBS_CONFIG")
	return c
}

// configPath is where it is.
func configPath(flag *text) string {
	if v := os.Getenv("DIBS_CONFIG"); v != "" && !flag.given {
		return v
	}
	return flag.value
}

// loadConfig reads it. Every mistake is said at once.
func loadConfig(flag *text) (*config.Config, string, error) {
	path := configPath(flag)
	c, err := config.Load(path)
	var faults *config.Faults
	switch {
	case errors.As(err, &faults):
		n := len(faults.List)
		return nil, path, failf(exitConfig, "%v\n%d %s in %s", err, n, plural(n, "mistake"), path)
	case err != nil:
		return nil, path, failf(exitConfig, "can't read the configuration: %v\nsay where it is with --config FILE", err)
	}
	return c, path, nil
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show the job runner's configuration",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return usagef("dibs config wants check, show or schema; see dibs config --help")
		},
	}
	cmd.AddCommand(newConfigCheck(), newConfigShow(), &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration, for editors",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			schema, err := config.Schema()
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", schema)
			}
			return err
		},
	})
	return cmd
}

func newConfigCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Tell everything that is wrong with the configuration",
		Args:  cobra.NoArgs,
	}
	file := configFile(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, path, err := loadConfig(file)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is right: %d %s\n", path, len(c.Jobs), plural(len(c.Jobs), "job"))
		return err
	}
	return cmd
}

func newConfigShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration as it is used, with every default",
		Args:  cobra.NoArgs,
	}
	file := configFile(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, _, err := loadConfig(file)
		if err != nil {
			return err
		}
		shown, err := c.Show()
		if err == nil {
			_, err = cmd.OutOrStdout().Write(shown)
		}
		return err
	}
	return cmd
}
