package fencetest_test

import (
	"os"
	"testing"

	"github.com/dibslock/dibs/internal/servers"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) != "" {
		os.Exit(oldHolder())
	}
	if os.Getenv(doerVar) != "" {
		os.Exit(doer())
	}
	servers.Main(m)
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
