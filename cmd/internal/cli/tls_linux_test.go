package cli_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// certificate writes one of this test's own for 127.0.0.1, and its key.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	shape := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, shape, shape, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return pool
}

// TestServeOverTLSWithTokens: a server that may be reached from elsewhere.
func TestServeOverTLSWithTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pool := certificate(t, dir)
	file := fmt.Sprintf("version: 1\nserver: { listen: '0.0.0.0:0', tls: { cert: %[1]s/cert.pem, key: %[1]s/key.pem }, auth: { tokens_file: %[1]s/tokens } }\njobs: { a: { command: 'true' } }\n", dir)
	for name, text := range map[string]string{"dibs.yaml": file, "tokens": "ann admin 0123456789abcdef0123\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(exe, "serve", "-c", dir+"/dibs.yaml", "-s", "sqlite://"+dir+"/locks.db")
	cmd.Args[0], cmd.Stderr = "dibs", log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			data, _ := os.ReadFile(log.Name())
			t.Errorf("%v\n%s", err, data)
		}
	}()
	port := ""
	soon(t, "it serves", func() bool {
		data, _ := os.ReadFile(log.Name())
		_, rest, ok := bytes.Cut(data, []byte("msg=serving listen=[::]:"))
		port, _, _ = strings.Cut(string(rest), " ")
		return ok
	})
	// ask asks a server that shows the certificate of pool for a run.
	ask := func(pool *x509.CertPool, token string) (int, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
		defer client.CloseIdleConnections()
		req, err := http.NewRequest(http.MethodPost, "https://127.0.0.1:"+port+"/run/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	const ann = "0123456789abcdef0123"
	for token, want := range map[string]int{"": 401, ann: 202} {
		if got, err := ask(pool, token); err != nil || got != want {
			t.Errorf("with the token %q: %d, %v", token, got, err)
		}
	}

	// New files are taken without a word; one that can't be read is told of, and
	// the certificate before stays.
	told := func(text string) func() bool {
		return func() bool {
			data, _ := os.ReadFile(log.Name())
			return bytes.Contains(data, []byte(text))
		}
	}
	if err := os.WriteFile(dir+"/key.pem", []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	soon(t, "it says that the key is none", told("the old one is in force"))
	if got, err := ask(pool, ann); err != nil || got == 401 {
		t.Errorf("%d, %v", got, err)
	}
	second := certificate(t, dir)
	soon(t, "it shows the new one", func() bool { _, err := ask(second, ann); return err == nil })
	if _, err := ask(pool, ann); err == nil {
		t.Error("it shows the old one too")
	}
	const bob = "9876543210fedcba9876"
	if err := os.WriteFile(dir+"/tokens", []byte("bob admin "+bob+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	soon(t, "it knows the new token", func() bool { got, err := ask(second, bob); return err == nil && got != 401 })
	if got, err := ask(second, ann); err != nil || got != 401 {
		t.Errorf("with the old token: %d, %v", got, err)
	}

	// TLS can't be ended under those who use it.
	plain := strings.Replace(file, "tls: {", "drain: 1s } #", 1)
	if err := os.WriteFile(dir+"/dibs.yaml", []byte(strings.ReplaceAll(plain, "0.0.0.0:0", "127.0.0.1:0")), 0o600); err != nil {
		t.Fatal(err)
	}
	soon(t, "it says that TLS stays", told("begun or ended without a restart"))
	if got, err := ask(second, bob); err != nil || got == 401 {
		t.Errorf("%d, %v", got, err)
	}
}

// soon polls what no event tells of.
func soon(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not after five minutes: %s", what)
		}
	}
}
