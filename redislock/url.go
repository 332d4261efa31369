package redislock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// config is what a URL says.
type config struct {
	client   rueidis.ClientOption
	locate   func(ctx context.Context) (addr string, err error) // where the server is; nil: at client's address
	closing  func()                                             // to be called when the store is closed; nil: nothing
	prefix   string
	replicas int // how many have to confirm a grant
	journal  bool
	plain    bool
}

// parse reads
//
//	redis://user:password@host:6379/0       plain TCP
//	rediss://user:password@host:6379/0      TLS
//	redis+unix://user:password@/path/to/socket?db=0
//
// and the parameters prefix, layout, journal, db, and for TLS ca, cert, key and
// servername. It does no I/O but to read the files of the latter.
func parse(u *url.URL) (config, error) {
	p := driver.NewParams(u)
	c := config{
		prefix:  p.String("prefix", "dibs"),
		journal: p.Choice("journal", "off", "on") == "on",
		plain:   p.Choice("layout", "line", "plain") == "plain",
	}
	db, database := p.String("db", ""), strings.Trim(u.Path, "/")
	files := [3]string{p.String("ca", ""), p.String("cert", ""), p.String("key", "")}
	server := p.String("servername", "")
	replicas := p.String("replicas", "0")
	if err := p.Err(); err != nil {
		return c, err
	}
	bad := func(format string, args ...any) (config, error) {
		return c, driver.Rejectedf("", "the store's URL: "+format, args...)
	}
	n, err := strconv.ParseUint(replicas, 10, 8)
	if err != nil {
		return bad("replicas=%q: want how many have to confirm a grant", replicas)
	}
	c.replicas = int(n)
	if err := c.check(); err != nil {
		return c, err
	}
	if u.Opaque != "" || u.Fragment != "" {
		return bad("want %s://host:port/database", u.Scheme)
	}
	if u.User != nil {
		c.client.Username = u.User.Username()
		c.client.Password, _ = u.User.Password()
		if c.client.Username != "" && c.client.Password == "" {
			return bad("a user needs a password: redis://user:password@host, or redis://:password@host")
		}
	}
	if u.Scheme == "redis+unix" {
		if u.Host != "" || database == "" {
			return bad("want redis+unix:///path/to/socket")
		}
		c.client.InitAddress = []string{u.Path}
		database = ""
	} else {
		host, port := u.Hostname(), u.Port()
		if strings.Contains(u.Host, ",") {
			return bad("%s:// is of one server, and several are listed: redis-sentinel://, redis-cluster:// and redlock:// are of several", u.Scheme)
		}
		if host == "" {
			host = "localhost"
		}
		if port == "" {
			port = "6379"
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return bad("the port: want a number from 1 to 65535") // and what is given may be a part of a password
		}
		c.client.InitAddress = []string{net.JoinHostPort(host, port)}
		if server == "" {
			server = host
		}
	}
	if database != "" && db != "" {
		return bad("the database is given twice")
	}
	if database += db; database != "" {
		n, err := strconv.ParseUint(database, 10, 31)
		if err != nil {
			return bad("database %q: want a number", database)
		}
		c.client.SelectDB = int(n)
	}
	if u.Scheme != "rediss" {
		if files != [3]string{} {
			return bad("ca, cert and key need rediss://")
		}
		return c, nil
	}
	c.client.TLSConfig, err = secured(server, files[0], files[1], files[2])
	return c, err
}

// check tells what can't be in c, whoever said it.
func (c config) check() error {
	switch {
	case c.prefix == "" || strings.ContainsAny(c.prefix, "{}") || driver.CheckName(c.prefix) != nil:
		return driver.Rejectedf("", "prefix %q: it must not be empty, and have no control characters and none of {}", c.prefix)
	case slices.ContainsFunc(tails, func(tail string) bool { return strings.HasSuffix(c.prefix, tail) }):
		return driver.Rejectedf("", "prefix %q: it must not end in any of %s: another prefix has its own keys there", c.prefix, strings.Join(tails, ", "))
	case c.plain && c.journal:
		return driver.Rejectedf("", "the plain layout has no journal")
	}
	return nil
}

// tails are what the keys of a prefix have before a name, besides it: a prefix that
// ended so would have the same keys as another.
var tails = []string{":mark", ":record", ":plain", ":redlock:name", ":redlock:plain"}

// secured is the configuration of TLS with a server, whose certificate must be
// of ca (or one of the system's), and to which we show cert, if it is given.
func secured(server, ca, cert, key string) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: server}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, driver.Rejectedf("", "the store's URL: ca: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, driver.Rejectedf("", "the store's URL: ca: no certificate in %s", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, driver.Rejectedf("", "the store's URL: cert and key need each other")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, driver.Rejectedf("", "the store's URL: cert and key: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}
