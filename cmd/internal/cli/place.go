package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"
)

// A place is where the locks are, and who said so.
type place struct {
	url  string
	from string
}

// theDefault is where a place is from that nobody chose.
const theDefault = "the default"

// String says both, without a password.
func (p place) String() string { return fmt.Sprintf("%s (%s)", redact(p.url), p.from) }

// choose decides on the store: the flag, the environment, or the file that all
// of this user's processes share.
func choose(flag text) (place, error) {
	if flag.given {
		if flag.value == "" {
			return place{}, failf(exitConfig, "--store is empty; want a URL such as sqlite:///var/lib/dibs/locks.db")
		}
		return place{flag.value, "from --store"}, nil
	}
	if v := os.Getenv("DIBS_STORE_URL"); v != "" {
		return place{v, "from DIBS_STORE_URL"}, nil
	}
	if path := os.Getenv("DIBS_STORE_URL_FILE"); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return place{}, failf(exitConfig, "DIBS_STORE_URL_FILE: %v", err)
		}
		v := strings.TrimSpace(string(data))
		if v == "" {
			return place{}, failf(exitConfig, "DIBS_STORE_URL_FILE: %s is empty; want a store's URL in it", path)
		}
		return place{v, "from the file in DIBS_STORE_URL_FILE"}, nil
	}
	dir := stateDir(os.Geteuid())
	if err := makeStateDir(dir); err != nil {
		return place{}, err
	}
	return place{defaultURL(dir), theDefault}, nil
}

// stateDir is where the default store is: one for the machine if root runs dibs,
// one for each other user. They don't exclude each other's jobs.
func stateDir(euid int) string {
	if euid == 0 {
		return "/var/lib/dibs"
	}
	return filepath.Join(xdg.StateHome, "dibs")
}

func makeStateDir(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		return nil
	}
	hint := "choose a store with --store or DIBS_STORE_URL"
	var pe *fs.PathError
	if errors.As(err, &pe) && errors.Is(err, fs.ErrExist) {
		hint = "move it away, or " + hint
	}
	return failf(exitNoStateDir, "can't make the directory of the default store: %v\n%s", err, hint)
}

// defaultURL is the URL of the default store.
func defaultURL(dir string) string {
	path := filepath.ToSlash(filepath.Join(dir, "locks.db"))
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	u := url.URL{Scheme: "sqlite", Path: path}
	return u.String()
}

// journaled is a store's URL as it is opened: the journal of a file is on unless
// the URL says otherwise, so that one can tell later who held what.
func journaled(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "sqlite" || u.Query().Has("journal") {
		return raw
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "journal=on"
	return u.String()
}

// unjournaled is the URL of a store whose journal is not to tell what is done.
func unjournaled(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "sqlite" {
		return raw
	}
	q, err := url.ParseQuery(u.RawQuery)
	if v := q["journal"]; err != nil || len(v) > 1 || len(v) == 1 && v[0] != "on" {
		return raw // what is wrong with it shall be found
	}
	q.Set("journal", "off")
	u.RawQuery = q.Encode()
	return u.String()
}

// journals tells whether what is done through p is written down, as far as its
// URL says.
func (p place) journals() bool {
	u, err := url.Parse(p.url)
	return err != nil || u.Query().Get("journal") != "off"
}

// redact returns a store's URL without what must stay secret.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" {
		return "(a URL that can't be parsed)"
	}
	hidden := false
	if _, has := u.User.Password(); has {
		u.User, hidden = url.User(u.User.Username()), true
	}
	q := u.Query()
	for key := range q {
		if secret(key) {
			q.Del(key)
			hidden = true
		}
	}
	if !hidden {
		return raw
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func secret(key string) bool {
	key = strings.ToLower(key)
	for _, word := range []string{"pass", "pwd", "secret", "token"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// identity tells stores apart: two URLs with one identity are one store. It
// leaves out who asks, and what doesn't change what is locked.
func identity(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	q := u.Query()
	q.Del("journal")
	for key := range q {
		if secret(key) {
			q.Del(key)
		}
	}
	path := u.Path
	if u.Host == "" && path != "" {
		// A file: by whatever name it is reached.
		path = filepath.Clean(path)
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(dir, filepath.Base(path))
		}
	}
	id := url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: path, RawQuery: q.Encode()}
	return id.String()
}
