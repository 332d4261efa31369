package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/cmd/internal/child"
	"github.com/dibslock/dibs/cmd/internal/guard"
	"github.com/dibslock/dibs/driver"
)

const runLong = `Run CMD while holding KEY, so that it runs once at a time everywhere where the
store is reached. If KEY is held elsewhere, dibs exits 75 at once and runs
nothing; with --wait it waits in line.

Flags stand anywhere before --. What follows it is the command and its arguments,
untouched. The command runs in a process group of its own; HUP INT QUIT TERM USR1
USR2 WINCH CONT TSTP are passed on to the group. The lock is renewed while the
command runs and given back when the whole group has ended: what the command left
in the background gets TERM, and after --kill-after KILL. The second interrupt in
5s that reaches dibs itself is followed by TERM, the third by KILL.

If the lock can't be kept, because the store doesn't answer or an operator
revoked it, all that the command has started gets TERM and after --grace KILL,
before the store can let another in. On Linux a guardian process does the same if
dibs is stopped; if dibs is killed, it leaves nothing of the command. Only if both
are killed at once, what the command has started may run on.

At a terminal (on Linux) the command has the foreground. Ctrl-Z stops dibs too, and
the lock isn't renewed until fg: a stop that is longer than --ttl loses it, and the
command is killed.

The command's environment has DIBS_KEY, DIBS_FENCE (a number that grows with every
holder; have the resource refuse smaller ones), DIBS_RUN_ID, DIBS_MODE, DIBS_TTL,
DIBS_STORE, and DIBS_KEYS (a line for each key held by this run and the runs around
it: key, store, process id, separated by tabs).

The store is --store, or $DIBS_STORE_URL, or the URL in the file
$DIBS_STORE_URL_FILE, or a file of this host: /var/lib/dibs/locks.db for root,
$XDG_STATE_HOME/dibs/locks.db for others (-v prints it). Users with files of their
own don't exclude each other's jobs.`

// A runner is one dibs run.
type runner struct {
	key  string
	argv []string // the command and its arguments
	path string   // the program

	store     text
	wait      wait
	slots     number
	shared    bool
	ttl       duration
	timeout   duration
	killAfter duration
	onLost    text
	grace     duration
	conflict  number
	caption   caption
	reason    text
	quiet     bool
	verbose   bool

	atLeastFor    duration
	jitter        duration
	ifStoreDown   text
	dieWithParent bool
	report        text
	eventsTo      text
	dryRun        bool

	began  time.Time
	runID  string
	result report
	events *events
	ppid   int
	parent chan struct{} // closed when the parent process has ended; nil: never
	pid    int
	place  place
	outer  []heldKey
	stderr io.Writer
	log    *slog.Logger
}

func newRun() *cobra.Command {
	r := &runner{
		store:     text{kind: "URL"},
		slots:     number{value: 1, least: 1, most: driver.MaxUnits},
		ttl:       duration{Duration: 30 * time.Second},
		killAfter: duration{Duration: 10 * time.Second},
		onLost:    text{kind: "kill|warn", value: "kill"},
		conflict:  number{value: exitHeld, least: 0, most: 255},
		reason:    text{kind: "TEXT"},

		ifStoreDown: text{kind: "fail|skip", value: "fail"},
		report:      text{kind: "FILE"},
		eventsTo:    text{kind: "FILE"},
	}
	cmd := &cobra.Command{
		Use:   "run KEY [flags] -- CMD [ARG...]",
		Short: "Run a command while holding a key",
		Long:  runLong + limits() + "\n\n" + exitCodes,
		Example: `  dibs run nightly -- backup.sh
  dibs run nightly --wait=10m --timeout 1h -- backup.sh
  */5 * * * *  dibs run -q -E 0 sync -- sync.sh    (crontab: a skip is no failure)
  dibs run -n 4 encode -- ffmpeg ...               (four at a time)`,
		Args:                  cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.stderr = cmd.ErrOrStderr()
			r.log, r.ppid = logger(r.stderr, r.verbose), os.Getppid()
			return r.told(func() error {
				if err := r.take(args, cmd.ArgsLenAtDash()); err != nil {
					return err
				}
				if r.dryRun {
					return r.rehearse(cmd.OutOrStdout())
				}
				if r.eventsTo.value != "" {
					var err error
					if r.events, err = openEvents(r.eventsTo.value, r.key, r.runID, r.stderr); err != nil {
						return err
					}
				}
				return r.run()
			})
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.VarP(&r.store, "store", "s", "where the locks are, such as sqlite:///var/lib/dibs/locks.db or redis://host")
	f.Var(&r.wait, "wait", "wait in line; with --wait=DUR for at most DUR, and also for a store that is down")
	f.Lookup("wait").NoOptDefVal = waitForever
	f.VarP(&r.slots, "slots", "n", "let up to N hold the key at once")
	f.BoolVar(&r.shared, "shared", false, "share the key with other --shared runs, and exclude all the others")
	f.Var(&r.ttl, "ttl", "how long the lock outlives its last renewal, and so a dead holder")
	f.Var(&r.timeout, "timeout", "stop the command after DUR and exit 124")
	f.Var(&r.killAfter, "kill-after", "send KILL this long after the TERM of --timeout, or to what is left in the background; if given, also after a TERM that was passed on")
	f.Var(&r.onLost, "on-lost", "when the lock is lost: kill the command, or only warn")
	f.Var(&r.grace, "grace", "time from TERM to KILL when the lock is lost; less than half of --ttl (default 5s, or a quarter of --ttl)")
	f.VarP(&r.conflict, "conflict-exit-code", "E", "exit with N if the key is held elsewhere, or the wait is over")
	f.StringArrayVar(&r.caption.meta, "meta", nil, "`k=v` for those who look at the lock; may be repeated")
	f.Var(&r.reason, "reason", "why, for those who look at the lock")
	f.Var(&r.atLeastFor, "at-least-for", "hold the key for DUR at least, also if the command ends sooner")
	f.Var(&r.jitter, "jitter", "first sleep for a random time of up to DUR")
	f.Var(&r.ifStoreDown, "if-store-down", "if the store can't be reached: fail with 69, or skip as if the key were held")
	f.BoolVar(&r.dieWithParent, "die-with-parent", false, "stop the command when the process ends that started dibs")
	f.Var(&r.report, "report", "write how it ended into FILE, as one JSON object")
	f.Var(&r.eventsTo, "events", "append what happens to FILE, as a line of JSON each")
	f.BoolVar(&r.dryRun, "dry-run", false, "only say what would be done now")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "don't say that it was skipped, or that it waits")
	f.BoolVarP(&r.verbose, "verbose", "v", false, "say which store is used, and what happens")
	return cmd
}

// limits says what dibs can't do on this system.
func limits() string {
	if l := guard.Limits(); l != "" {
		return "\n\n" + wrap("On this system "+l+".", 80)
	}
	return ""
}

// take reads the arguments: dash of them stood before the --, or it is -1.
func (r *runner) take(args []string, dash int) error {
	const usage = "usage: dibs run KEY [flags] -- CMD [ARG...]"
	switch {
	case dash < 0 && len(args) == 0:
		return usagef("the key and the command are missing\n%s", usage)
	case dash < 0 && len(args) == 1:
		return usagef("the command for %s is missing; nothing was run\n%s", quote(args[0]), usage)
	case dash < 0:
		return usagef("-- is missing before the command; nothing was run\ndid you mean: dibs run %s -- %s", shellWord(args[0]), commandLine(args[1:]))
	case dash == 0:
		return usagef("the key is missing before --; nothing was run\n%s", usage)
	case dash > 1:
		return usagef("unexpected %s before --; nothing was run\n%s", quote(args[1]), r.surplus(args[:dash]))
	case dash == len(args):
		return usagef("the command is missing after --; nothing was run\n%s", usage)
	}
	r.key, r.argv = args[0], args[1:]
	return r.check()
}

// surplus guesses what was meant by more than one argument before the --.
func (r *runner) surplus(args []string) string {
	if r.wait.wanted && !r.wait.given {
		for _, arg := range args {
			if _, err := parseDuration(arg); err == nil {
				return fmt.Sprintf("did you mean --wait=%s?", arg)
			}
		}
	}
	return fmt.Sprintf("one key is locked; the command follows --: dibs run %s -- %s", shellWord(args[0]), commandLine(args[1:]))
}

// check refuses what can't be meant, before anything is done.
func (r *runner) check() error {
	if err := checkKey(r.key); err != nil {
		return err
	}
	r.caption.argv, r.caption.reason = r.argv, r.reason.value
	if err := r.caption.check(); err != nil {
		return err
	}
	if !r.grace.given {
		r.grace.Duration = min(5*time.Second, r.ttl.Duration/4)
	}
	switch {
	case r.shared && r.slots.given:
		return usagef("--shared and --slots exclude each other: a shared key has no limit")
	case !slices.Contains([]string{"kill", "warn"}, r.onLost.value):
		return usagef("--on-lost %s: want kill or warn", quote(r.onLost.value))
	case !slices.Contains([]string{"fail", "skip"}, r.ifStoreDown.value):
		return usagef("--if-store-down %s: want fail or skip", quote(r.ifStoreDown.value))
	case r.report.given && r.report.value == "", r.eventsTo.given && r.eventsTo.value == "":
		return usagef("--report and --events need the name of a file")
	case r.dieWithParent && !knowsParent:
		return usagef("--die-with-parent: this system doesn't tell of the end of a parent")
	case r.grace.Duration >= r.ttl.Duration/2:
		return usagef("--grace %s: it must be less than half of --ttl %s, or the command could not be stopped before the lock ends", short(r.grace.Duration), short(r.ttl.Duration))
	case r.quiet && r.verbose:
		return usagef("--quiet and --verbose exclude each other")
	}
	path, err := child.Look(r.argv[0])
	switch {
	case errors.Is(err, child.ErrNotFound):
		return failf(exitNotFound, "%v; nothing was locked", err)
	case err != nil:
		return failf(exitNotExecutable, "%v; nothing was locked", err)
	}
	r.path, r.pid = path, os.Getpid()
	return nil
}

func (r *runner) mode() string { return r.claimMode().String() }

func (r *runner) claimMode() driver.Mode {
	switch {
	case r.shared:
		return driver.Shared
	case r.slots.value > 1:
		return driver.Counted
	}
	return driver.Exclusive
}
