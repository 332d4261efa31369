//go:build !unix

package cli

import "os"

var (
	ending, quitting = []os.Signal{os.Interrupt}, []os.Signal{os.Interrupt}
	passing, broken  []os.Signal
)

// Nothing stops a command here.
var stopSignal, contSignal os.Signal

// isTerm tells whether sig asks the command to end.
func isTerm(os.Signal) bool { return false }
