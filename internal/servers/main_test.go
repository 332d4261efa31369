package servers_test

import (
	"os"
	"testing"

	"github.com/dibslock/dibs/internal/servers"
)

// role is the variable that makes the test binary, run by one of its own tests,
// do what must not happen in that test's own process.
const role = "DIBS_SERVERS_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "no main" {
		os.Exit(m.Run())
	}
	servers.Main(m)
}
