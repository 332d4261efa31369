package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// openTime bounds how long the opening of a store may take.
const openTime = 10 * time.Second

// closeTime bounds what is done for the store after the work is over: what it
// doesn't answer by then ends by its TTL.
const closeTime = time.Second

// open opens the store once.
func (p place) open(ctx context.Context) (driver.Store, error) {
	return p.openAs(ctx, journaled(p.url))
}

// openToRead opens the store to read its journal, also if that is not written.
func (p place) openToRead(ctx context.Context) (driver.Store, error) {
	return p.openAs(ctx, withJournal(p.url, "on"))
}

// nothing answers in the place of a file that is not there, which is not made for a
// question: nobody holds anything in it.
func nothing(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, "mem://?journal=on") }

// absent tells that the store is a file that could be made, and was not yet.
func (p place) absent() bool {
	path := p.file()
	if path == "" {
		return false
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	dir, err := os.Stat(filepath.Dir(path))
	_, wrong := driver.PlanSetup(p.url)
	return err == nil && dir.IsDir() && wrong == nil
}

func (p place) openAs(ctx context.Context, rawURL string) (driver.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	store, err := driver.Open(ctx, rawURL)
	if err != nil {
		return nil, p.cannotOpen(err)
	}
	return store, nil
}

// cannotOpen says why, by what would have to change: the configuration, the
// permissions, or the store's health.
func (p place) cannotOpen(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission) && p.file() == "":
		return failf(exitRefused, "can't use the store %s: %v\ncheck the user, the password and the rights: dibs store init --print shows which rights it takes", p, err)
	case errors.Is(err, fs.ErrPermission), driver.Certain(err) && p.forbidden():
		return failf(exitRefused, "can't open the store %s: %v\ncheck who may write there, or choose another store with --store", p, err)
	case driver.Certain(err):
		return failf(exitConfig, "can't use the store %s: %v\n%s", p, err, p.correction())
	}
	return failf(exitStoreDown, "can't reach the store %s: %v\n%s", p, err, p.later())
}

// forbidden tells whether the store is a file that this user may not write, or
// may not make.
func (p place) forbidden() bool {
	u, err := driver.ParseURL(p.url)
	if err != nil || u.Scheme != "sqlite" || u.Path == "" {
		return false
	}
	path := u.Path
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path = filepath.Dir(path)
	}
	return !writable(path)
}

// correction says what to write instead.
func (p place) correction() string {
	if !strings.ContainsAny(p.url, ":@") { // it may have a password otherwise
		if abs, err := filepath.Abs(p.url); err == nil {
			return "did you mean sqlite://" + filepath.ToSlash(abs) + "?"
		}
	}
	return "correct it, or choose another one with --store or DIBS_STORE_URL"
}

// client makes a client of an open store. What is wrong with the settings is
// wrong with the flags.
func (p place) client(store driver.Store, opts *dibs.Options) (*dibs.Client, error) {
	c, err := dibs.New(store, opts)
	var rejected *driver.RejectedError
	switch {
	case err == nil:
		return c, nil
	case errors.As(err, &rejected):
		err = usagef("%s (store: %s); nothing was done", strings.TrimPrefix(rejected.Why, "settings: "), p)
	default:
		err = p.cannotOpen(err)
	}
	_ = store.Close() // nothing was asked of it
	return nil, err
}

// cannot is the failure of something asked of the store about key.
func (p place) cannot(what, key string, err error) error {
	ability := what
	if key != "" {
		what += " " + quote(key)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return failf(exitRefused, "can't %s in %s: %v%s", what, p, err, elsewhere(ability))
	case errors.Is(err, dibs.ErrRejected), errors.Is(err, fs.ErrPermission):
		return failf(exitRefused, "can't %s: the store %s refuses: %v", what, p, err)
	}
	return failf(exitStoreDown, "can't %s: the store %s gives no clear answer: %v\n%s", what, p, err, p.later())
}

// later is what can be done about a store that is down.
func (p place) later() string {
	if p.waits {
		return "try again when it is up, or wait for it with --wait=DUR"
	}
	return "try again when it is up"
}

// closeClient ends the client, and says what was left behind.
func closeClient(c *dibs.Client, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		log.Warn("not everything was given back", "err", err)
	}
}
