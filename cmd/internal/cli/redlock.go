package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/redislock"
)

func newRedlock() *cobra.Command {
	r := &quorumAdmin{}
	cmd := &cobra.Command{
		Use:   "redlock init | status | readmit NODE",
		Short: "Make and mend a quorum of Redis servers",
		Long: `Make and mend a quorum: the servers of a redlock:// store, which have to remember
what they answered.

  init          makes the servers of the URL the nodes of a new quorum; all have to
                be there, and none may be a node already
  status        tells which nodes vote, and why others do not
  readmit NODE  lets a node that lost its memory, or was restarted, vote again, with
                what a majority of the others knows; it says how long to wait first

status exits 0 if a majority votes, and 69 otherwise. With --json it prints an array
with for each node: node, error (absent: it was reached), votes, why, durable,
largest (the largest token), longest_ms, uptime_ms.`,
		Example: `  dibs redlock init -s redlock://a,b,c
  dibs redlock readmit -s redlock://a,b,c b:6379`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"init", "status", "readmit"}, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	r.store.kind = "URL"
	f := cmd.Flags()
	f.VarP(&r.store, "store", "s", "the quorum, redlock://host,host,host")
	f.BoolVar(&r.json, "json", false, "print JSON (status)")
	return cmd
}

// A quorumAdmin is one dibs redlock.
type quorumAdmin struct {
	store text
	json  bool
}

func (r *quorumAdmin) run(cmd *cobra.Command, args []string) error {
	const usage = "usage: dibs redlock init, dibs redlock status, or dibs redlock readmit NODE"
	want := map[string]int{"init": 1, "status": 1, "readmit": 2}
	switch {
	case len(args) == 0:
		return usagef("%s", usage)
	case want[args[0]] == 0:
		return usagef("unknown command %s; %s", quote(args[0]), usage)
	case len(args) != want[args[0]]:
		return usagef("%s", usage)
	}
	p, err := choose(r.store)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), listTime)
	defer cancel()
	switch args[0] {
	case "init":
		if err := redislock.RedlockInit(ctx, p.url); err != nil {
			return p.cannotOpen(err)
		}
		say(cmd.ErrOrStderr(), "made the quorum (store: %s)", p)
	case "readmit":
		if err := redislock.RedlockReadmit(ctx, p.url, args[1]); err != nil {
			return p.cannotOpen(err)
		}
		say(cmd.ErrOrStderr(), "%s votes again (store: %s)", args[1], p)
	default:
		return r.status(ctx, cmd, p)
	}
	return nil
}

// A nodeReport is the JSON of a node in redlock status.
type nodeReport struct {
	Node    string `json:"node"`
	Error   string `json:"error,omitempty"`
	Votes   bool   `json:"votes"`
	Why     string `json:"why,omitempty"`
	Durable bool   `json:"durable"`
	Largest string `json:"largest,omitempty"`
	Longest int64  `json:"longest_ms"`
	Uptime  int64  `json:"uptime_ms"`
}

func (r *quorumAdmin) status(ctx context.Context, cmd *cobra.Command, p place) error {
	nodes, err := redislock.RedlockStatus(ctx, p.url)
	if err != nil {
		return p.cannotOpen(err)
	}
	var reports []nodeReport
	votes := 0
	for _, n := range nodes {
		report := nodeReport{
			Node: n.Addr, Votes: n.Votes, Why: n.Why, Durable: n.Durable, Largest: strconv.FormatUint(n.Largest, 10),
			Longest: n.Longest.Milliseconds(), Uptime: n.Uptime.Milliseconds(),
		}
		if n.Err != nil {
			report = nodeReport{Node: n.Addr, Error: n.Err.Error()}
		}
		if n.Votes {
			votes++
		}
		reports = append(reports, report)
	}
	if r.json {
		err = printJSON(cmd.OutOrStdout(), reports)
	}
	for _, n := range reports {
		if r.json || err != nil {
			break
		}
		text := "votes"
		switch {
		case n.Error != "":
			text = "can't be reached: " + n.Error
		case !n.Votes:
			text = "does not vote: " + n.Why
		case !n.Durable:
			text = "votes, until it is restarted"
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%-24s %s\n", n.Node, printable(text))
	}
	if err == nil && 2*votes <= len(nodes) {
		return failf(exitStoreDown, "%d of %d nodes vote: nobody gets a lock", votes, len(nodes))
	}
	return err
}
