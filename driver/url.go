package driver

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// ParseURL parses a store's URL. It is url.Parse, which knows one host, for URLs of
// several too: redlock://user:password@[::1]:6379,[::2]:6379,host:6379/0. Their Host
// is the list as it is written, the brackets of IPv6 addresses included.
//
// An error is an ErrRejected that quotes nothing of the URL, since what is where it
// should not be may be of a password. For the same reason an @ behind the host is an
// error: redis://app:12/34@host has a host app, a port 12 and a path, to url.Parse.
func ParseURL(rawURL string) (*url.URL, error) {
	u, err := parseHosts(rawURL)
	if err == nil {
		_, err = url.ParseQuery(u.RawQuery)
	}
	switch {
	case err != nil:
		return nil, Rejectedf("", "the store's URL can't be parsed: %s; %s", fault(rawURL, err), encode)
	case strayAt(u, rawURL):
		return nil, Rejectedf("", "the store's URL can't be parsed: it has an @ behind the host; %s", encode)
	}
	return u, nil
}

// encode is what helps mostly.
const encode = "within a user, a password, a path or a parameter write %2F for /, %23 for #, %3F for ?, %40 for @, %3A for :, %25 for %"

func parseHosts(rawURL string) (*url.URL, error) {
	from, to := hosts(rawURL)
	list := rawURL[from:to]
	if !strings.Contains(list, ",") || !strings.Contains(list, "[") {
		return url.Parse(rawURL)
	}
	var all []string
	for host := range strings.SplitSeq(list, ",") {
		one, err := url.Parse("//" + host)
		if err != nil {
			return nil, err
		}
		all = append(all, one.Host)
	}
	u, err := url.Parse(rawURL[:from] + "hosts" + rawURL[to:])
	if err != nil {
		return nil, err
	}
	u.Host = strings.Join(all, ",")
	return u, nil
}

// hosts tells where the hosts of a URL are in it.
func hosts(rawURL string) (from, to int) {
	from = len(authority.FindString(rawURL))
	if from == 0 {
		return 0, 0
	}
	rest := rawURL[from:]
	to = len(rawURL)
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		to = from + end
	}
	return from + strings.LastIndex(rawURL[from:to], "@") + 1, to
}

// fault says what is wrong with a URL that url.Parse refuses, by kind: the texts of
// that package quote the URL.
func fault(rawURL string, err error) string {
	var escape url.EscapeError
	var host url.InvalidHostError
	from, to := hosts(rawURL)
	switch {
	case errors.As(err, &escape):
		return "a % in it is not followed by two hexadecimal digits"
	case errors.As(err, &host):
		return "its host has a character that no host has"
	case !startsWithScheme.MatchString(rawURL):
		return "it has no scheme"
	case !endsWithPort.MatchString(rawURL[from:to]):
		return "its port is not a number"
	}
	return "it has a character that must not stand where it is"
}

var (
	startsWithScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	authority        = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	endsWithPort     = regexp.MustCompile(`(^[^:]*|:[0-9]*|\])$`)
)

// strayAt tells whether rawURL has an @ that may be the end of a password and is not
// taken for it. A file's path may have one: its URL has no user.
func strayAt(u *url.URL, rawURL string) bool {
	_, to := hosts(rawURL)
	rest := rawURL[to:]
	if u.Scheme == "sqlite" && u.Host == "" && u.User == nil {
		path, behind := rest, ""
		if end := strings.IndexAny(rest, "?#"); end >= 0 {
			path, behind = rest[:end], rest[end:]
		}
		return userLike.MatchString(path) || strings.Contains(behind, "@")
	}
	return strings.Contains(rest, "@")
}

// userLike is what begins like user:password@, and not like C:/Users/a@b.
var userLike = regexp.MustCompile(`^(sqlite:[^/].*:.*|(sqlite:)?/.*[^/:]:[^/]*)@`)

// Redact returns a store's URL as it may be shown: without a password, or what may
// be one. If it can't be parsed, that is its scheme and the host behind the last @.
func Redact(rawURL string) string {
	u, err := ParseURL(rawURL)
	if err != nil {
		return remains(rawURL)
	}
	if u.Scheme == "" || u.Opaque != "" && u.Scheme != "sqlite" {
		return unparsable
	}
	shown := *u
	password, _ := u.User.Password()
	switch {
	case u.User == nil:
	case password != "":
		shown.User = url.User(u.User.Username())
	case !strings.HasPrefix(u.Scheme, "postgres") && u.Scheme != "pgadvisory": // there no user is without a password: it may be one
		shown.User = nil
	}
	if hides(u.RawQuery) {
		shown.RawQuery = "" // all of it: a password may have an & too
	}
	shown.Fragment, shown.RawFragment = "", ""
	if shown == *u {
		return rawURL
	}
	return shown.String()
}

const unparsable = "(a URL that can't be parsed)"

// remains is what may be shown of a URL that can't be parsed.
func remains(rawURL string) string {
	scheme := authority.FindString(rawURL)
	rest := rawURL[len(scheme):]
	at := strings.LastIndex(rest, "@")
	if scheme == "" || at < 0 {
		return unparsable
	}
	host := rest[at+1:]
	if end := strings.IndexAny(host, "/?#"); end >= 0 {
		host = host[:end]
	}
	if strings.Contains(rest[:at], "=") || !plainHosts.MatchString(host) {
		host = "…" // the @ may be within a parameter that is a password
	}
	return scheme + "…@" + host
}

// plainHosts are hosts with their ports.
var plainHosts = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?(,([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?)*$`)

// hides tells whether a query has a parameter that must stay secret, or may have.
func hides(query string) bool {
	values, err := url.ParseQuery(query)
	if err != nil {
		return true
	}
	for key := range values {
		if SecretParam(key) {
			return true
		}
	}
	return false
}

// SecretParam tells whether the value of a parameter of that name must stay secret.
func SecretParam(parameter string) bool {
	parameter = strings.ToLower(parameter)
	for _, word := range []string{"pass", "pwd", "secret", "token", "auth", "cred"} {
		if strings.Contains(parameter, word) {
			return true
		}
	}
	return false
}
