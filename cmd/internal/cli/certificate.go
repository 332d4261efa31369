package cli

import (
	"crypto/tls"
	"errors"
	"sync/atomic"

	"github.com/dibslock/dibs/cmd/internal/config"
)

// A certificate is what the server shows its clients. It can be replaced while it
// serves: those who are connected stay, and who comes sees the new one.
type certificate struct {
	now atomic.Pointer[tls.Certificate]
}

// loadPair reads the certificate and its key; nil: there is to be none.
func loadPair(t *config.TLS) (*tls.Certificate, error) {
	if t == nil {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, failf(exitConfig, "server.tls: %v", err)
	}
	return &pair, nil
}

var errNoCertificate = errors.New("there is no certificate")

// config has each handshake look at the one in force.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if pair := c.now.Load(); pair != nil {
				return pair, nil
			}
			return nil, errNoCertificate
		},
	}
}
