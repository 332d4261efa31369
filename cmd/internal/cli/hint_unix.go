//go:build unix

package cli

import (
	"errors"

	"golang.org/x/sys/unix"
)

// scriptHint says what a kernel means that doesn't know a file's format.
func scriptHint(err error) string {
	if errors.Is(err, unix.ENOEXEC) {
		return "; does it lack a first line such as #!/bin/sh?"
	}
	return ""
}
