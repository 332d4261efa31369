package sqlitelock

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/dibslock/dibs/driver"
)

func init() {
	driver.Register("sqlite", openURL)
	driver.RegisterSetup("sqlite", func(u *url.URL) (driver.Setup, error) {
		_, _, err := parse(u)
		return driver.Setup{}, err // the file is made when it is opened for the first time
	})
}

// Options are a lock file's settings. The zero value is the default.
type Options struct {
	// Journal writes every event to the file's journal (journal=on). It makes
	// each change a little slower.
	Journal bool
	// Force takes the file also from a file system that is not known to be
	// local (force=yes). On a network file system, locks do not exclude then.
	Force bool

	clock    *clock // tests only
	noEvents bool   // tests only: poll
	bell     *bell  // tests only: in place of file events
}

// parse reads sqlite:///absolute/path or sqlite:relative/path.
func parse(u *url.URL) (path string, opts Options, err error) {
	p := driver.NewParams(u)
	opts = Options{
		Journal: p.Choice("journal", "off", "on") == "on",
		Force:   p.Choice("force", "no", "yes") == "yes",
	}
	if err := p.Err(); err != nil {
		return "", opts, err
	}
	path, err = urlPath(u)
	return path, opts, err
}

func openURL(ctx context.Context, u *url.URL) (driver.Store, error) {
	path, opts, err := parse(u)
	if err != nil {
		return nil, err
	}
	s, err := Open(ctx, path, &opts)
	if err != nil {
		return nil, err // not s: a nil *Store is no nil driver.Store
	}
	return s, nil
}

func urlPath(u *url.URL) (string, error) {
	const want = "want sqlite:///absolute/path.db or sqlite:relative/path.db"
	switch {
	case u.User != nil || u.Host != "":
		return "", driver.Rejectedf("", "the store's URL has a host (%s): %s", u.Host, want)
	case u.Fragment != "":
		return "", driver.Rejectedf("", "the store's URL has a fragment; write %%23 for a # in the path")
	}
	path := u.Path
	if u.Opaque != "" {
		var err error
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return "", driver.Rejectedf("", "the path in the store's URL: %w", err)
		}
	}
	return checkPath(path)
}

func checkPath(path string) (string, error) {
	switch {
	case path == "" || strings.HasSuffix(path, "/"):
		return "", driver.Rejectedf("", "the store's path %q names no file", path)
	case strings.HasPrefix(path, ":memory:"):
		return "", driver.Rejectedf("", "a store in memory is mem://, which no other process shares")
	case strings.ContainsRune(path, 0):
		return "", driver.Rejectedf("", "the store's path has a NUL byte")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", driver.Rejectedf("", "the store's path %q: %w", path, err)
	}
	return abs, nil
}
