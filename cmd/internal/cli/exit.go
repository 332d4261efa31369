package cli

import (
	"errors"
	"fmt"
	"io/fs"
)

// The exit codes are promises: scripts depend on them. They follow sysexits(3)
// where that has a code, and the shell and timeout(1) for 124 to 127.
const (
	exitUsage         = 64  // the command line is wrong; nothing was done
	exitStoreDown     = 69  // the store can't be reached, or gives no clear answer
	exitNoStateDir    = 73  // the default store's directory can't be made
	exitHeld          = 75  // held elsewhere, a limit is used up, or the wait is over
	exitChanged       = 76  // the holder, its token, or the request is another, or a run was interrupted
	exitRefused       = 77  // the store refuses: no permission, or a mode that it lacks
	exitConfig        = 78  // the store that was chosen can't be one
	exitLost          = 79  // the lock was lost, and the command stopped
	exitTimeout       = 124 // --timeout
	exitFailed        = 125 // dibs itself failed after the start
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal's number
)

const exitCodes = `Exit codes:
  0-255  the command's own, when it ran to its end
  64     wrong usage; nothing was done
  69     the store can't be reached, or gives no clear answer
  73     the directory of the default store, or a file, can't be made
  75     skipped: held elsewhere, a limit is used up, or the wait is over (-E
         changes it)
  76     of once: KEY is of another --request, or --interrupted fail
  77     refused by the store: a wrong password, no permission for its file or
         server, or something that it can't do
  78     bad configuration: a bad store URL, an unknown scheme or parameter, or a
         path that can't be a store (a directory, a FIFO, another kind of file)
  79     the lock was lost, and the command stopped
  124    --timeout was over
  125    dibs failed after the command was started
  126    the command is not executable   } found out before locking
  127    the command was not found       }
  128+n  the command, or dibs while it waited, ended by signal n`

// A failure is an error that ends the program with a code of its own.
type failure struct {
	code int
	text string // for people; "": all was said
}

func (f *failure) Error() string { return f.text }

// failf returns a failure.
func failf(code int, format string, args ...any) error {
	return &failure{code: code, text: fmt.Sprintf(format, args...)}
}

// usagef returns a failure of the command line.
func usagef(format string, args ...any) error { return failf(exitUsage, format, args...) }

// verdict returns the exit code of err, and what is left to say about it.
func verdict(err error) (code int, text string) {
	var f *failure
	var pe *fs.PathError
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &f):
		return f.code, f.text
	case errors.As(err, &pe): // of the output: all others are failures
		return exitFailed, fmt.Sprintf("can't write: %v", err)
	}
	return exitUsage, err.Error() // cobra's own complaints
}
