package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// Main runs the command line and returns the exit code.
func Main(args []string) int {
	return run(args, os.Stdout, os.Stderr)
}

func run(args []string, stdout, stderr io.Writer) int {
	stderr = &lockedWriter{w: stderr}
	root := newRoot()
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(hoist(root, args))
	code, text := verdict(root.Execute())
	say(stderr, "%s", text)
	return code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "dibs",
		Short: "One holder at a time, across processes and machines",
		Long: `dibs runs commands under locks that processes and machines share, on the store
that they already have; with nothing installed, on a file of this host.

  dibs run nightly -- backup.sh          run it, unless it runs already
  dibs elect worker -- work.sh           run it while this instance leads
  dibs once migrate/42 -- migrate.sh     run it unless it was done before
  dibs limit mail 10/1h -- mail.sh       run it at most so often
  dibs ls                                who holds what
  dibs show nightly                      who holds and who waits
  dibs watch                             the same, as it changes
  dibs history --since 1h                who held what when
  dibs force-unlock nightly --token 7    take it away from its holder
  dibs doctor                            is the store fit for use?
  dibs store init                        make its tables, if it has any`,
		SilenceUsage:               true,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		CompletionOptions:          cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			fmt.Fprint(cmd.ErrOrStderr(), cmd.UsageString())
			return &failure{code: exitUsage}
		},
		Args: cobra.ArbitraryArgs,
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newRun(), newElect(), newOnce(), newLimit(), completesKeys(newLs()), completesKeys(newShow()), newVersion())
	root.AddCommand(completesKeys(newFollow()), completesKeys(newHistory()), completesKeys(newForceUnlock()), newFence())
	root.AddCommand(newServe(), newTrigger(), newJobs(), newRuns(), newLogs(), newNext(), newConfig())
	root.AddCommand(newDoctor(), newStore(), newRedlock(), newCompletion(), newMan())
	root.SetHelpCommand(newHelp())
	return root
}

// newHelp is cobra's, but that a command which is not there is an error.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		Args:  cobra.ArbitraryArgs,
		RunE: func(help *cobra.Command, args []string) error {
			cmd, _, err := help.Root().Find(args)
			if err != nil || !cmd.HasParent() && len(args) > 0 {
				return unknownCommand(help.Root(), args[0])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

func unknownCommand(root *cobra.Command, name string) error {
	hint := "see dibs --help"
	if near := root.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean: dibs " + strings.Join(near, ", dibs ")
	}
	return usagef("unknown command %q; %s", name, hint)
}

// say prints a message of one or more lines, each under the program's name.
func say(w io.Writer, format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	if text == "" {
		return
	}
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("dibs: " + printable(line) + "\n")
	}
	io.WriteString(w, b.String())
}

// A lockedWriter lets many goroutines write whole messages.
type lockedWriter struct {
	mu   sync.Mutex // guards what follows
	w    io.Writer
	live bool // a line is shown that is not to stay
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clearLocked()
	return l.w.Write(p)
}
