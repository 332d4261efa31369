//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

var (
	// ending are the signals that end a wait. USR1 and USR2 would end any
	// program that doesn't expect them.
	ending = []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2}
	// passing are passed on to the command, and mean nothing to a wait.
	passing = []os.Signal{unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP}
	// quitting are those among them that ask for the end of whatever runs.
	quitting = []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM}
	broken   = []os.Signal{unix.SIGPIPE}
)

// What stops the command for a while, and what lets it go on.
var stopSignal, contSignal os.Signal = unix.SIGTSTP, unix.SIGCONT

// isTerm tells whether sig asks the command to end.
func isTerm(sig os.Signal) bool { return sig == unix.SIGTERM }
