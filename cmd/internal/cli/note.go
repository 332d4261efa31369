package cli

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/dibslock/dibs/driver"
)

// maxExtras is how much of a note --reason and --meta may take, in bytes: the
// rest is for who holds it and the command line.
const maxExtras = 512

// A caption is what a holder says about itself: the note of a claim.
type caption struct {
	reason string
	meta   []string // key=value, in the order given
	argv   []string
}

// note writes user@host (pid N): command line [reason; k=v, k=v]. The command
// line is cut to what a note can take.
func (c caption) note() string {
	who := fmt.Sprintf("%s@%s (pid %d): ", userName(), hostName(), os.Getpid())
	extras := c.extras()
	command := commandLine(c.argv)
	return who + trim(command, driver.MaxNote-len(who)-len(extras)) + extras
}

func (c caption) extras() string {
	var parts []string
	if c.reason != "" {
		parts = append(parts, printable(c.reason))
	}
	if len(c.meta) > 0 {
		parts = append(parts, printable(strings.Join(c.meta, ", ")))
	}
	if parts == nil {
		return ""
	}
	return " [" + strings.Join(parts, "; ") + "]"
}

// check tells what is wrong with the flags.
func (c caption) check() error {
	seen := make(map[string]bool)
	for _, m := range c.meta {
		key, _, ok := strings.Cut(m, "=")
		switch {
		case !ok || key == "":
			return usagef("--meta %s: want key=value", quote(m))
		case seen[key]:
			return usagef("--meta %s: the key %s is given twice", quote(m), quote(key))
		case !utf8.ValidString(m):
			return usagef("--meta %s: it is not valid UTF-8", quote(m))
		}
		seen[key] = true
	}
	if !utf8.ValidString(c.reason) {
		return usagef("--reason %s: it is not valid UTF-8", quote(c.reason))
	}
	if n := len(c.extras()); n > maxExtras {
		return usagef("--reason and --meta are %d bytes long together; at most %d are allowed", n, maxExtras)
	}
	return nil
}

// password matches the password of a URL in a command line. A store is read by
// more people than this host's process list.
var password = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*):\S+@`)

func commandLine(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = shellWord(arg)
	}
	return printable(password.ReplaceAllString(strings.Join(words, " "), "$1:***@"))
}

func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return trim(printable(u.Username), 64)
	}
	return trim(printable(cmp.Or(os.Getenv("USER"), fmt.Sprintf("uid %d", os.Getuid()))), 64)
}

func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return trim(printable(host), 128)
}
