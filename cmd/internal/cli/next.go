package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/cmd/internal/schedule"
)

func newNext() *cobra.Command {
	count := number{value: 5, least: 1, most: 1000}
	after := text{kind: "TIME"}
	cmd := &cobra.Command{
		Use:   "next JOB",
		Short: "When a job is due next",
		Long: `Print when a job is due next, by the configuration alone: no server is asked.
All instances compute the same times.`,
		Args: cobra.ExactArgs(1),
	}
	file := configFile(cmd)
	cmd.Flags().VarP(&count, "count", "n", "how many times")
	cmd.Flags().Var(&after, "after", "begin after this moment, such as 2026-10-25T00:00:00Z; default now")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, path, err := loadConfig(file)
		if err != nil {
			return err
		}
		j := c.Jobs[args[0]]
		switch {
		case j == nil:
			return usagef("%s has no job %s", path, quote(args[0]))
		case len(j.Schedule) == 0:
			return usagef("the job %s has no schedule", quote(args[0]))
		}
		s, err := schedule.New(j.ID, j.Schedule, j.Location, j.Jitter.Duration)
		if err != nil {
			return failf(exitConfig, "%v", err)
		}
		at := time.Now()
		if after.given {
			if at, err = time.Parse(time.RFC3339, after.value); err != nil {
				return usagef("--after %s: want a time such as 2026-10-25T00:00:00Z", quote(after.value))
			}
		}
		for range count.value {
			if at = s.Next(at); at.IsZero() {
				break
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), s.Due(at).In(j.Location).Format("2006-01-02 15:04:05 MST")); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}
