package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// What Look answers, so that nothing is locked for a command that can't run.
var (
	// ErrNotFound: there is no such program.
	ErrNotFound = errors.New("command not found")
	// ErrNotExecutable: there is one, but it can't be executed.
	ErrNotExecutable = errors.New("command not executable")
)

// Look finds the program that a shell would run for name.
func Look(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrDot):
		return path, nil // the user's PATH says so
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		if found := unfit(name); found != "" {
			return "", fmt.Errorf("%w: %q: %s is there, but may not be executed", ErrNotExecutable, name, found)
		}
		return "", fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	return "", fmt.Errorf("%w: %w", ErrNotExecutable, err)
}

// unfit returns a file of that name in the PATH, which exec.LookPath passed over
// because it is not executable.
func unfit(name string) string {
	if name == "" || filepath.Base(name) != name || runtime.GOOS == "windows" {
		return ""
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}
