package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dibslock/dibs/driver"
)

// Whatever is wrong with a URL that has a password in it, no part of the password is
// in what is said about it, wherever it is said.
func TestNoPartOfAPasswordIsShown(t *testing.T) {
	t.Parallel()
	const first, second = "4815162", "Tr0ub4dor" // the first of them could be a port
	var passwords []string
	for _, between := range []string{
		"", "#", "/", "?", "@", ":", "%", "&", "=", ";", ",", "[", "]", " ", `\`, `"`, "+", "é", "\x01", "://", "#@", "/@", "?@", ":@", "@/", "/=", "%2F", "%zz", "/?#@:",
	} {
		passwords = append(passwords, first+between+second, second+between+first, between+first+second, first+second+between)
	}
	shapes := []string{
		"%[1]s://app:%[2]s@127.0.0.1:1/0", "%[1]s://:%[2]s@127.0.0.1:1", "%[1]s://%[2]s@127.0.0.1:1", "%[1]s://app:%[2]s@a:1,[::1]:2,c/0?x=y", "%[1]s://app:%[2]s@[::1/0",
		"%[1]s://app:%[2]s@a:b", "%[1]s://app:%[2]s@/sock?db=z", "%[1]s:app:%[2]s@h", "%[1]s:/app:%[2]s@h", "app:%[2]s@h:6379", ":%[2]s@h", "%[2]s@h",
		"%[1]s://h/?password=%[2]s", "%[1]s://h/?pass%%20word=%[2]s%%", "%[1]s://h/?sentinel-password=%[2]s&x=%%", "%[1]s://u:p@h/?db=x&PASSWD=%[2]s",
	}
	reveals := func(text string) bool { return strings.Contains(text, first) || strings.Contains(text, second) }
	for _, scheme := range append(driver.Schemes(), "unknown") {
		for _, shape := range shapes {
			for _, password := range passwords {
				url := fmt.Sprintf(shape, scheme, password)
				switch {
				case scheme == "sqlite" && (strings.Contains(shape, ":/app") && strings.Contains(password, "/") || strings.Contains(shape, "://%[2]s@") && strings.HasPrefix(password, "/")):
					continue // a path
				case strings.HasPrefix(shape, "%[1]s://%[2]s@") && (strings.Contains(password, ":") || strings.HasPrefix(scheme, "p")):
					continue // a user
				}
				if shown := driver.Redact(url); reveals(shown) {
					t.Errorf("%s is shown as %s", url, shown)
				}
				if _, err := driver.PlanSetup(url); err != nil && reveals(err.Error()) {
					t.Errorf("%s: %v", url, err)
				}
			}
		}
	}
}

// What is wrong is told by kind, and what can be done.
func TestWhatIsWrongWithAURL(t *testing.T) {
	t.Parallel()
	for url, why := range map[string]string{
		"redis://app:a#3@h":    "its port is not a number; within a user, a password",
		"redis://app:12/3@h":   "it has an @ behind the host; within a user, a password, a path or a parameter write %2F for /",
		"redis://app:1%2@h":    "a % in it is not followed by two hexadecimal digits",
		"redis://h/?a=%":       "a % in it is not followed by two hexadecimal digits",
		"redis://a b/":         "its host has a character that no host has",
		"app@h:1":              "it has no scheme",
		"redis://h:x":          "its port is not a number",
		"redis://a:x,[::1]/":   "a character that must not stand where it is",
		"redis://h/\x01":       "a character that must not stand where it is",
		"foo://u:p@h":          "unknown scheme foo://",
		"redis://u:p@h/?a=b@c": "it has an @ behind the host",
		"sqlite:ann:x@h":       "it has an @ behind the host",
	} {
		if _, err := driver.PlanSetup(url); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v, want %s", url, err, why)
		}
	}
	for _, url := range []string{"sqlite:///srv/a@b/locks.db", "sqlite:a@b.db", "sqlite:///C:/Users/a@b/locks.db", "redis://u:p%40%2F%3A@h/?prefix=a%40b", "postgres://a%40b:p@h/d"} {
		if _, err := driver.PlanSetup(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
