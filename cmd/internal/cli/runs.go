package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/cmd/internal/web"
)

func newRuns() *cobra.Command {
	var asJSON bool
	limit := number{value: 20, least: 1, most: 200}
	cmd := &cobra.Command{
		Use:   "runs [JOB]",
		Short: "What ran, the newest first",
		Args:  cobra.MaximumNArgs(1),
	}
	a := newAPI(cmd)
	cmd.Flags().VarP(&limit, "limit", "n", "how many")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, as the server's API has it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q := url.Values{"limit": {fmt.Sprint(limit.value)}}
		if len(args) > 0 {
			q.Set("job", args[0])
		}
		got, err := a.do(cmd.Context(), http.MethodGet, "/api/v1/runs?"+q.Encode(), nil, nil)
		if err != nil {
			return err
		}
		if asJSON {
			return printRaw(cmd.OutOrStdout(), got.body)
		}
		var list struct{ Runs []web.Run }
		if err := json.Unmarshal(got.body, &list); err != nil {
			return failf(exitStoreDown, "the server's answer can't be read: %v", err)
		}
		return columns(cmd.OutOrStdout(), func(w io.Writer) {
			fmt.Fprintln(w, "RUN\tJOB\tSTATE\tTRIGGER\tSTARTED\tTOOK\tREASON")
			for _, r := range list.Runs {
				started, took := "-", "-"
				if r.Started != nil {
					started = r.Started.Local().Format(time.DateTime)
					if r.Ended != nil {
						took = short(r.Ended.Sub(*r.Started).Round(time.Millisecond))
					}
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, printable(r.Job), r.State, r.Trigger, started, took, printable(r.Reason+" "+r.Holder))
			}
		})
	}
	return cmd
}

// columns writes aligned columns.
func columns(w io.Writer, rows func(w io.Writer)) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	rows(t)
	return t.Flush()
}

func newJobs() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "The jobs of dibs serve, and how they stand",
		Args:  none,
	}
	a := newAPI(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, as the server's API has it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		got, err := a.do(cmd.Context(), http.MethodGet, "/api/v1/jobs?limit=200", nil, nil)
		if err != nil {
			return err
		}
		if asJSON {
			return printRaw(cmd.OutOrStdout(), got.body)
		}
		var list struct{ Jobs []web.Job }
		if err := json.Unmarshal(got.body, &list); err != nil {
			return failf(exitStoreDown, "the server's answer can't be read: %v", err)
		}
		return columns(cmd.OutOrStdout(), func(w io.Writer) {
			fmt.Fprintln(w, "JOB\tSTATE\tLAST\tNEXT\tQUEUED")
			for _, j := range list.Jobs {
				state, last, next := "idle", "-", "-"
				switch {
				case j.Paused != nil:
					state = "paused by " + printable(j.Paused.By)
				case j.Current != nil:
					state = j.Current.State
				case j.Pattern:
					state = "pattern"
				}
				if j.Last != nil {
					last = j.Last.State
				}
				if j.Next != nil {
					next = j.Next.Local().Format(time.DateTime)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", printable(j.ID), state, last, next, j.Queued)
			}
		})
	}
	return cmd
}

func newLogs() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs RUN",
		Short: "What a run says",
		Args:  cobra.ExactArgs(1),
	}
	a := newAPI(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until it has ended")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path := "/api/v1/runs/" + url.PathEscape(args[0]) + "/log"
		if follow {
			path += "?follow=true"
		}
		resp, err := a.send(cmd.Context(), http.MethodGet, path, nil, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(cmd.OutOrStdout(), resp.Body); err != nil {
			return failf(exitStoreDown, "the log broke off: %v", err)
		}
		return nil
	}
	return cmd
}
