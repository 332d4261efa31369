package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/cmd/internal/web"
)

// A trigger is one dibs trigger.
type trigger struct {
	api    *api
	params []string
	key    text
	wait   duration
	json   bool
}

func newTrigger() *cobra.Command {
	t := &trigger{key: text{kind: "KEY"}}
	cmd := &cobra.Command{
		Use:   "trigger JOB",
		Short: "Start a run of a job",
		Long: `Start a run of a job of dibs serve, and print its id. With --wait, wait for its
end: the exit code is then its own (124 if its time was over, 79 if it was lost,
1 if it has none and failed). If it isn't accepted, because it runs already, is
paused, or its rate limit is used up, dibs exits 75.`,
		Args: cobra.ExactArgs(1),
	}
	t.api = newAPI(cmd)
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&t.params, "param", nil, "`k=v` that the job declares; may be repeated")
	f.Var(&t.key, "key", "an Idempotency-Key: repeat the command with it as often as needed, it starts one run")
	f.Var(&t.wait, "wait", "wait for the end, for at most DUR")
	f.BoolVar(&t.json, "json", false, "print the run as JSON")
	cmd.RunE = t.run
	return cmd
}

func (t *trigger) run(cmd *cobra.Command, args []string) error {
	body := map[string]map[string]string{}
	for _, p := range t.params {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return usagef("--param %s: want key=value", quote(p))
		}
		if body["params"] == nil {
			body["params"] = map[string]string{}
		}
		body["params"][k] = v
	}
	header := http.Header{"Dibs-Trigger": {"cli"}}
	if t.key.given {
		header.Set("Idempotency-Key", t.key.value)
	}
	deadline := time.Now().Add(t.wait.Duration)
	if t.wait.given {
		header.Set("Prefer", "wait="+strconv.Itoa(waitSeconds(t.wait.Duration)))
	}
	a, err := t.api.do(cmd.Context(), http.MethodPost, jobPath(args[0]), header, body)
	for {
		if err != nil {
			return err
		}
		var run web.Run
		if err := json.Unmarshal(a.body, &run); err != nil {
			return failf(exitStoreDown, "the server's answer can't be read: %v", err)
		}
		if run.Ended != nil || !time.Now().Before(deadline) {
			return t.say(cmd, run, a.body)
		}
		// The server waits for a minute at the most.
		select {
		case <-time.After(min(500*time.Millisecond, time.Until(deadline))):
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		}
		a, err = t.api.do(cmd.Context(), http.MethodGet, "/api/v1/runs/"+run.ID, nil, nil)
	}
}

func waitSeconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

func (t *trigger) say(cmd *cobra.Command, run web.Run, raw []byte) error {
	out := cmd.OutOrStdout()
	if t.json {
		if err := printRaw(out, raw); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(out, "%s %s\n", run.ID, run.State); err != nil {
		return err
	}
	if !t.wait.given {
		return nil
	}
	reason := printable(run.Reason)
	switch run.State {
	case "succeeded":
		return nil
	case "failed":
		if run.Exit != nil && *run.Exit != 0 {
			return &failure{code: *run.Exit}
		}
		return failf(1, "%s failed: %s", run.ID, reason)
	case "timeout":
		return failf(exitTimeout, "%s: %s", run.ID, reason)
	case "lost":
		return failf(exitLost, "%s was lost: %s", run.ID, reason)
	case "skipped":
		return failf(exitHeld, "%s was skipped: %s", run.ID, reason)
	case "cancelled", "missed":
		return failf(1, "%s is %s: %s", run.ID, run.State, reason)
	}
	return failf(exitHeld, "%s is still %s; follow it with: dibs logs -f %s", run.ID, run.State, run.ID)
}
