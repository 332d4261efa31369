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
	for deadline := time.Now().Add(time.Minute); port == ""; time.Sleep(10 * time.Millisecond) {
		data, _ := os.ReadFile(log.Name())
		if _, rest, ok := bytes.Cut(data, []byte("msg=serving listen=[::]:")); ok {
			port, _, _ = strings.Cut(string(rest), " ")
		}
		if time.Now().After(deadline) {
			t.Fatalf("it doesn't serve: %s", data)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	for token, want := range map[string]int{"": 401, "0123456789abcdef0123": 202} {
		req, err := http.NewRequest(http.MethodPost, "https://127.0.0.1:"+port+"/run/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with the token %q: %d", token, resp.StatusCode)
		}
	}
}
