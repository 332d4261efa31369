package redislock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// What is wrong with a URL is told before any I/O: nothing listens there.
func TestBadURLs(t *testing.T) {
	for _, u := range []string{
		"redis://user:secret@127.0.0.1:1/?ttl=3",
		"redis://user:secret@127.0.0.1:1/?prefix=",
		"redis://user:secret@127.0.0.1:1/?prefix={a}",
		"redis://user:secret@127.0.0.1:1/?prefix=a&prefix=b",
		"redis://user:secret@127.0.0.1:1/?layout=fancy",
		"redis://user:secret@127.0.0.1:1/?journal=maybe",
		"redis://user:secret@127.0.0.1:1/?layout=plain&journal=on",
		"redis://user:secret@127.0.0.1:1/zero",
		"redis://user:secret@127.0.0.1:1/1/2",
		"redis://user:secret@127.0.0.1:1/1?db=2",
		"redis://user:secret@127.0.0.1:1/?db=-1",
		"redis://user:secret@127.0.0.1:1/?ca=/tmp/ca.pem",
		"redis://user:secret@127.0.0.1:1/#secret",
		"redis://user@127.0.0.1:1/",
		"redis:127.0.0.1",
		"rediss://user:secret@127.0.0.1:1/?ca=/no/such/file",
		"rediss://user:secret@127.0.0.1:1/?cert=/no/such/file",
		"rediss://user:secret@127.0.0.1:1/?cert=/no/such/file&key=/no/such/file",
		"redis+unix://user:secret@host/path",
		"redis://user:secret@127.0.0.1:99999/",
		"redis://user:secret@127.0.0.1:0/",
		"redis://user:secret@127.0.0.1:1,127.0.0.1:2/",
		"redis-cluster://user:secret@127.0.0.1:1,127.0.0.1:99999/",
		"redis-sentinel://user:secret@127.0.0.1:99999,127.0.0.1:2/main",
		"redlock://user:secret@127.0.0.1:1,127.0.0.1:2,127.0.0.1:99999/",
		"redis://user:secret@127.0.0.1:1/?prefix=dibs:record",
		"redis://user:secret@127.0.0.1:1/?prefix=dibs:mark",
		"redis://user:secret@127.0.0.1:1/?prefix=dibs:plain",
		"redlock://user:secret@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/?prefix=dibs:redlock:name",
		"redis+unix://user:secret@",
	} {
		s, err := driver.Open(t.Context(), u)
		if err == nil {
			s.Close()
		}
		isRejected(t, err)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the password: %v", u, err)
		}
	}
}

// A server that is not what the URL says will not become that by asking again.
func TestServersOfAnotherKindAreRejected(t *testing.T) {
	t.Parallel()
	addr := servers.SharedRedis(t).Addr()
	for u, hint := range map[string]string{
		"redis://" + addr + "/99":              "databases",
		"redis-cluster://" + addr + "/":        "in no cluster",
		"redis-sentinel://" + addr + "/main":   "no sentinel",
		"redis://" + addr + "/?db=99":          "databases",
		"redis-sentinel://" + addr + "/main/1": "no sentinel",
	} {
		_, err := driver.Open(t.Context(), u)
		isRejected(t, err)
		if !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v does not say %q", u, err, hint)
		}
	}
}

// In the plain layout a name is a key, and may be none of the store's own.
func TestPlainNamesAreNoKeysOfTheStore(t *testing.T) {
	t.Parallel()
	params := space()
	prefix := strings.TrimPrefix(params, "prefix=")
	s := open(t, servers.SharedRedis(t).Addr(), params+"&layout=plain")
	for _, name := range []string{prefix + ":mark", prefix + ":plain:{x}:x"} {
		_, err := s.Acquire(t.Context(), drivertest.Mutex(name, time.Minute))
		isRejected(t, err)
		_, err = s.(driver.Batcher).AcquireAll(t.Context(), []driver.Claim{drivertest.Mutex(name, time.Minute)})
		isRejected(t, err)
	}
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex(prefix+".mark", time.Minute))
	drivertest.MustRelease(t, s, m)
}

// works opens u and locks with it.
func works(t *testing.T, u string) {
	t.Helper()
	s, err := driver.Open(t.Context(), u)
	if err != nil {
		t.Fatalf("%s: %v", u, err)
	}
	defer s.Close()
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
	_, stop, err := s.(driver.Watcher).Watch(t.Context(), m)
	if err != nil {
		t.Fatalf("%s: watch: %v", u, err)
	}
	stop()
	drivertest.MustRelease(t, s, m)
}

func TestUsersDatabasesAndSockets(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis.sock")
	r := servers.Redis(t, servers.RedisArgs("--unixsocket", socket))
	works(t, "redis://"+r.Addr())
	works(t, "redis+unix://"+socket+"?db=3&prefix=other")
	works(t, "redis://"+r.Addr()+"/3")
	c, err := r.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Do("SELECT", "3")
	if n, _ := c.Do("DBSIZE"); n != int64(2) {
		t.Errorf("database 3 has %v keys, want the two marks", n)
	}

	setup, err := driver.PlanSetup("redis://" + r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	var rights []any
	for word := range strings.FieldsSeq(setup.Rights("locker")) {
		rights = append(rights, strings.ReplaceAll(word, "PASSWORD", "secret/?@"))
	}
	do(t, r, rights...)
	works(t, "redis://locker:"+url.QueryEscape("secret/?@")+"@"+r.Addr()+"?journal=on")
	for _, u := range []string{"redis://locker:wrong@" + r.Addr(), "redis://nobody:secret@" + r.Addr()} {
		_, err := driver.Open(t.Context(), u)
		isRejected(t, err)
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), ":wrong") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
	s, err := driver.Open(t.Context(), "redis://locker:"+url.QueryEscape("secret/?@")+"@"+r.Addr()+"?prefix=else")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Acquire(t.Context(), drivertest.Mutex("name", time.Minute))
	isRejected(t, err) // NOPERM
}

func TestTLSWithClientCertificates(t *testing.T) {
	dir := t.TempDir()
	ca, caKey := issue(t, dir, "ca", nil, nil)
	issue(t, dir, "server", ca, caKey)
	issue(t, dir, "client", ca, caKey)
	at := func(name string) string { return filepath.Join(dir, name) }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	l.Close()
	servers.Redis(t, servers.RedisArgs("--tls-port", port, "--tls-cert-file", at("server.pem"), "--tls-key-file", at("server.key"),
		"--tls-ca-cert-file", at("ca.pem"), "--tls-auth-clients", "yes"))
	works(t, "rediss://"+addr+"?ca="+at("ca.pem")+"&cert="+at("client.pem")+"&key="+at("client.key"))
	works(t, "rediss://"+addr+"?ca="+at("ca.pem")+"&cert="+at("client.pem")+"&key="+at("client.key")+"&servername=localhost")
	for u, hint := range map[string]string{
		"rediss://" + addr + "?cert=" + at("client.pem") + "&key=" + at("client.key"):                                               "by ca=FILE",
		"rediss://" + addr + "?ca=" + at("ca.pem") + "&cert=" + at("client.pem") + "&key=" + at("client.key") + "&servername=other": "by servername=",
	} {
		_, err := driver.Open(t.Context(), u)
		isRejected(t, err)
		if !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v does not say %q", u, err, hint)
		}
	}
	// What the server says of a certificate that is missing may be cut off.
	if s, err := driver.Open(t.Context(), "rediss://"+addr+"?ca="+at("ca.pem")); err == nil {
		t.Errorf("without a certificate: %v", s)
	}
	if s, err := driver.Open(t.Context(), "redis://"+addr); err == nil || driver.Certain(err) {
		t.Errorf("without TLS: %v, %v", s, err)
	}
}

// A server that is silent may speak in a moment; why nothing came of it is told.
func TestSilentServers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // which answers nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for scheme, want := range map[string]string{
		"redis":         "redis: no answer within 3s",
		"rediss":        "does the port speak TLS?",
		"redis-cluster": "no answer within 3s",
	} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			_, err := driver.Open(t.Context(), scheme+"://"+l.Addr().String())
			if err == nil || driver.Certain(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an unknown error with %q", err, want)
			}
		})
	}
	ctx, end := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("the wait is over"))
	defer end()
	if _, err := driver.Open(ctx, "redis://"+l.Addr().String()); err == nil || !strings.Contains(err.Error(), "the wait is over, while it was connecting to "+l.Addr().String()) {
		t.Errorf("got %v", err)
	}
}

// issue writes a certificate and its key; of itself, if ca is nil.
func issue(t *testing.T, dir, name string, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:         ca == nil, BasicConstraintsValid: true,
	}
	if ca == nil {
		ca, caKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca, &key.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c, key
}

// A list of hosts may have IPv6 addresses in it, with ports or without.
func TestIPv6Hosts(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"redlock://user:secret@[::1]:1,[::2],host:3/0":       "[::1]:1 [::2]:6379 host:3",
		"redlock://a,[fe80::1%25eth0]:2,[::3]":               "a:6379 [fe80::1%eth0]:2 [::3]:6379",
		"redis-sentinel://[::1],[::2]:2/main":                "[::1]:26379 [::2]:2",
		"rediss-cluster://user:secret@[::1]:1,b?prefix=a[b,": "[::1]:1 b:6379",
	} {
		u, err := driver.ParseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got, err := redislock.HostsOf(u); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", raw, got, err, want)
		}
		again, err := driver.ParseURL(u.String())
		if err != nil || again.Host != u.Host || again.User.String() != u.User.String() {
			t.Errorf("%s: written and read again: %v, %v", raw, again, err)
		}
	}
	for _, raw := range []string{"redlock://user:secret@[::1]:1,[::2,c/", "redlock://user:secret@[::1]:1,[x],c/", "redlock://user:secret@[::1]:1,b:x,c/"} {
		_, err := driver.Open(t.Context(), raw)
		isRejected(t, err)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the password: %v", raw, err)
		}
	}
}

// A quorum, and a cluster, at IPv6 addresses.
func TestQuorumAtIPv6Addresses(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatalf("no IPv6 on this machine: %v", err)
	}
	l.Close()
	var addrs []string
	for _, r := range servers.Redises(t, 3, servers.RedisArgs("--bind", "127.0.0.1", "::1")) {
		addrs = append(addrs, net.JoinHostPort("::1", strings.TrimPrefix(r.Addr(), "127.0.0.1:")))
	}
	q := newQuorum(t, addrs, "prefix=p")
	s := q.open(t)
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
	drivertest.MustRelease(t, s, m)
	setup, err := driver.PlanSetup(q.url())
	if err != nil || setup.Makes == "" {
		t.Fatalf("setup %+v, %v", setup, err)
	}
	if made, err := setup.Make(t.Context()); made || err != nil {
		t.Errorf("made again: %v, %v", made, err)
	}
}
