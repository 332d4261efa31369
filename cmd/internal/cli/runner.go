package cli

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dibslock/dibs/cmd/internal/guard"
	"github.com/dibslock/dibs/driver"
)

// A runner is one dibs run, or another command that runs a command.
type runner struct {
	verb     string                        // its own name
	operands []string                      // what stands before the --, for messages: "key"
	key      string                        // or keys, as messages name them
	names    []string                      // of what is locked, in the order given
	free     bool                          // nothing is
	prepare  func(operands []string) error // does what else the arguments ask for; nil: nothing
	argv     []string                      // the command and its arguments
	path     string                        // the program

	store     text
	more      []string // -k
	wait      wait
	waits     bool // it has --wait
	patient   bool // there is no end to the wait, also not for a store that is down
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
	again  bool // a run of once before this one was interrupted
	stderr io.Writer
	log    *slog.Logger
}

func newRunner(verb string, operands ...string) *runner {
	return &runner{
		verb:      verb,
		operands:  operands,
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
}

// command is the cobra command that reads its arguments, opens the store, and does
// work with it.
func (r *runner) command(work func(s *session) error) *cobra.Command {
	return &cobra.Command{
		Use:                   r.use(),
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
				return r.within(work)
			})
		},
	}
}

// flags gives cmd those of a runner's flags that it has, in their order.
func (r *runner) flags(cmd *cobra.Command, names ...string) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.VarP(&r.store, "store", "s", "where the locks are, such as sqlite:///var/lib/dibs/locks.db or redis://host")
	f.StringArrayVarP(&r.more, "key", "k", nil, "lock `KEY`; may be repeated: all of them or none")
	f.Var(&r.wait, "wait", "wait in line; with --wait=DUR for at most DUR, and also for a store that is down")
	f.Lookup("wait").NoOptDefVal = waitForever
	f.VarP(&r.slots, "slots", "n", "let up to N hold the key at once")
	f.BoolVar(&r.shared, "shared", false, "share the key with other --shared runs, and exclude all the others")
	f.Var(&r.ttl, "ttl", "how long the lock outlives its last renewal, and so a dead holder")
	f.Var(&r.timeout, "timeout", "stop the command after DUR and exit 124")
	f.Var(&r.killAfter, "kill-after", "send KILL this long after the TERM of --timeout, or to what is left in the background; if given, also after a TERM that was passed on")
	f.Var(&r.onLost, "on-lost", "when the lock is lost: kill the command, or only warn")
	f.Var(&r.grace, "grace", "time from TERM to KILL when the lock is lost; less than half of --ttl (default 5s, or a quarter of --ttl)")
	f.VarP(&r.conflict, "conflict-exit-code", "E", "exit with N, and not 75, when it is skipped")
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
	cmd.Flags().SortFlags = false
	for _, name := range names {
		cmd.Flags().AddFlag(f.Lookup(name))
	}
	r.waits = cmd.Flags().Lookup("wait") != nil
}

// limits says what dibs can't do on this system.
func limits() string {
	if l := guard.Limits(); l != "" {
		return "\n\n" + wrap("On this system "+l+".", 80)
	}
	return ""
}

func (r *runner) mode() string {
	if r.free {
		return ""
	}
	return r.claimMode().String()
}

func (r *runner) claimMode() driver.Mode {
	switch {
	case r.shared:
		return driver.Shared
	case r.slots.value > 1:
		return driver.Counted
	}
	return driver.Exclusive
}
