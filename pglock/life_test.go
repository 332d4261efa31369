package pglock_test

import (
	"errors"
	"testing"

	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

// The life of a client is its connection; of several none is its life.
func TestLifeFileIsOneConnection(t *testing.T) {
	t.Parallel()
	rawURL := advisory(newStore(t, servers.SharedPostgres(t)))
	f, err := open(t, rawURL).(*pglock.Advisory).LifeFile()
	if err != nil || f == nil {
		t.Fatalf("got %v, %v", f, err)
	}
	defer f.Close()
	if _, err := open(t, with(t, rawURL, "", "sessions", "2")).(*pglock.Advisory).LifeFile(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("of two sessions: got %v, want an ErrUnsupported", err)
	}
}
