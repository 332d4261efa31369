package fence_test

import (
	"errors"
	"testing"

	"github.com/dibslock/dibs/fence"
	"github.com/dibslock/dibs/internal/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stale fails the test unless err is want.
func stale(t *testing.T, err error, want fence.StaleError) {
	t.Helper()
	got, ok := errors.AsType[*fence.StaleError](err)
	if !ok || *got != want || !errors.Is(err, fence.ErrStale) {
		t.Errorf("%v (%T), want %v", err, err, &want)
	}
}
