package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/adrg/xdg"

	"github.com/dibslock/dibs/driver"
)

// A place is where the locks are, and who said so.
type place struct {
	url   string
	from  string
	waits bool // whoever uses it could wait for it, and does not
}

// theDefault is where a place is from that nobody chose.
const theDefault = "the default"

// String says both, without a password.
func (p place) String() string { return fmt.Sprintf("%s (%s)", driver.Redact(p.url), p.from) }

// choose decides on the store: the flag, the environment, or the file that all
// of this user's processes share.
func choose(flag text) (place, error) {
	if flag.given {
		if flag.value == "" {
			return place{}, failf(exitConfig, "--store is empty; want a URL such as sqlite:///var/lib/dibs/locks.db")
		}
		return place{url: flag.value, from: "from --store"}, nil
	}
	if v := os.Getenv("DIBS_STORE_URL"); v != "" {
		return place{url: v, from: "from DIBS_STORE_URL"}, nil
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
		return place{url: v, from: "from the file in DIBS_STORE_URL_FILE"}, nil
	}
	dir := stateDir(os.Geteuid())
	if err := makeStateDir(dir); err != nil {
		return place{}, err
	}
	return place{url: defaultURL(dir), from: theDefault}, nil
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

// diarists are the schemes whose stores write a journal with journal=on.
var diarists = []string{"sqlite", "redis", "rediss", "redis+unix", "postgres", "postgresql"}

// writesJournal tells whether the store that u names can write a journal. A lock
// that is shared with other programs has none.
func writesJournal(u *url.URL) bool {
	return slices.Contains(diarists, u.Scheme) && u.Query().Get("layout") != "plain"
}

// journaled is a store's URL as it is opened: its journal is on unless the URL
// says otherwise, so that one can tell later who held what.
func journaled(raw string) string {
	u, err := driver.ParseURL(raw)
	if err != nil || !writesJournal(u) || u.Query().Has("journal") {
		return raw
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "journal=on"
	return u.String()
}

// withJournal is the URL of a store whose journal is on or off, whatever it says.
func withJournal(raw, how string) string {
	u, err := driver.ParseURL(raw)
	if err != nil || !writesJournal(u) {
		return raw
	}
	q, err := url.ParseQuery(u.RawQuery)
	if v := q["journal"]; err != nil || len(v) > 1 || len(v) == 1 && v[0] != "on" && v[0] != "off" {
		return raw // what is wrong with it shall be found
	}
	q.Set("journal", how)
	u.RawQuery = q.Encode()
	return u.String()
}

// journals tells whether what is done through p is written down, as far as its
// URL says.
func (p place) journals() bool {
	u, err := driver.ParseURL(p.url)
	return err != nil || u.Query().Get("journal") != "off"
}

// means are parameters that say how a store is reached or opened, and not what is
// locked in it.
var means = []string{
	"journal", "force", "create", "pooler", "sessions", "ca", "cert", "key", "servername", "user", "application_name", "connect_timeout",
	"target_session_attrs", "channel_binding", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslsni", "sslnegotiation",
	"min_protocol_version", "max_protocol_version", "krbspn", "krbsrvname", "service", "servicefile",
}

// identity tells stores apart: two URLs with one identity are one store. It
// leaves out who asks, and what doesn't change what is locked.
func identity(raw string) string {
	u, err := driver.ParseURL(raw)
	if err != nil {
		return raw
	}
	q := u.Query()
	for key := range q {
		// The advisory locks of PostgreSQL have a key that is something else.
		if driver.SecretParam(key) || slices.Contains(means, key) && (key != "key" || u.Scheme != "pgadvisory") {
			q.Del(key)
		}
	}
	id := url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: u.Path}
	switch id.Scheme {
	case "redis", "rediss":
		id.Host = withPort(id.Host, "6379")
		if id.Path = strings.Trim(id.Path+q.Get("db"), "/"); id.Path == "" {
			id.Path = "0"
		}
		q.Del("db")
	case "postgres", "postgresql", "pgadvisory":
		if id.Scheme == "postgresql" {
			id.Scheme = "postgres"
		}
		id.Host = withPort(id.Host, "5432")
		if strings.Trim(id.Path, "/") == "" {
			id.Path = u.User.Username() // the database of that name
		}
	case "sqlite":
		// A file: by whatever name it is reached.
		id.Path = place{url: raw}.file()
		if dir, err := filepath.EvalSymlinks(filepath.Dir(id.Path)); err == nil {
			id.Path = filepath.Join(dir, filepath.Base(id.Path))
		}
	}
	id.RawQuery = q.Encode()
	return id.String()
}

// withPort is a host with its port, or with the one that is meant if there is none.
func withPort(host, port string) string {
	if host == "" {
		host = "localhost"
	}
	if u := (url.URL{Host: host}); u.Port() == "" {
		return strings.TrimSuffix(host, ":") + ":" + port
	}
	return host
}
