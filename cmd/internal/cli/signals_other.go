//go:build !unix

package cli

import "os"

var ending, passing, broken = []os.Signal{os.Interrupt}, []os.Signal(nil), []os.Signal(nil)

// Nothing stops a command here.
var stopSignal, contSignal os.Signal

// isTerm tells whether sig asks the command to end.
func isTerm(os.Signal) bool { return false }
