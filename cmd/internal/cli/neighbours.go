package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// passwdFile lists the users of this host, where there is one.
const passwdFile = "/etc/passwd"

// neighbours tells of default stores on this host that are not the one in use:
// what their users run does not exclude what runs here.
func (d *doctor) neighbours() {
	const check = "neighbours"
	if d.place.file() == "" && d.place.url != "" {
		return // it is a store for more than this host
	}
	passwd, err := os.ReadFile(passwdFile)
	if err != nil {
		d.notef(info, check, "the users of this host can't be listed; each has a default store of its own")
		return
	}
	found, hidden := defaultStores(string(passwd), d.place.file())
	var text string
	switch {
	case len(found) > 0:
		text = "other default stores, which do not exclude this one: " + strings.Join(found, ", ")
	case hidden == 0:
		text = "no other user of this host has a default store"
	default:
		text = "no other default store is seen"
	}
	if hidden > 0 {
		text += fmt.Sprintf(" (homes that can't be looked into: %d)", hidden)
	}
	if len(found) > 0 && d.place.from == theDefault {
		d.note(warning, check, text, "to exclude each other's jobs, share one: set DIBS_STORE_URL for all")
		return
	}
	d.note(info, check, text, "")
}

// defaultStores lists the default stores of the users in passwd but for the one
// in use, and counts the homes where it can't be seen whether there is one.
func defaultStores(passwd, inUse string) (found []string, hidden int) {
	seen := map[string]bool{filepath.Clean(inUse): true}
	for line := range strings.Lines(passwd) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 6 {
			continue
		}
		dir := filepath.Join(f[5], ".local/state/dibs")
		if uid, err := strconv.Atoi(f[2]); err == nil && uid == 0 {
			dir = stateDir(0)
		}
		path := filepath.Join(dir, "locks.db")
		if seen[path] || !filepath.IsAbs(path) {
			continue
		}
		seen[path] = true
		switch _, err := os.Stat(path); {
		case err == nil:
			found = append(found, fmt.Sprintf("%s (%s)", path, printable(f[0])))
		case errors.Is(err, fs.ErrPermission):
			if _, err := os.Stat(dir); err == nil { // made by dibs, most likely with a store in it
				found = append(found, fmt.Sprintf("%s (%s; can't be looked into)", dir, printable(f[0])))
			} else {
				hidden++
			}
		}
	}
	return found, hidden
}
