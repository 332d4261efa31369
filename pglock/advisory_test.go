package pglock_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

// advisory is the URL of the advisory locks of the database that rawURL names.
func advisory(rawURL string) string { return "pgadvisory" + strings.TrimPrefix(rawURL, "postgres") }

// unfit are tests that end a claim as only a store can that frees by TTL, or that
// want an acquire to be one answer.
var unfit = map[string]string{
	"L31_GrantIsTrustedFromTheCall":          "it delays every answer of the server by a quarter of the TTL, and an acquire here is several: now and then that is longer than the call may take",
	"L15_EachClaimHasItsProof/UnknownForAll": "it cuts the connection, and expects the claims to outlive that",
	"L28_WaiterAsksAtRetryAfter":             "it waits for the end of a claim whose client lives on and says no more",
	"L34_RefusedEndsAtOnce":                  "it ends a claim by way of another client, which has another session",
	"L22_RevokeTellsTheHolder/Now":           "it keeps names closed, and asks for TookOver: TestAdvisoryRevokeNow does the rest of it",
}

// strict is a store that waives law 22 no more: it keeps it where holders answer.
type strict struct{ *pglock.Advisory }

func openStrict(t testing.TB, rawURL string) strict {
	t.Helper()
	a := open(t, rawURL).(*pglock.Advisory)
	a.SetPatience(long) // all who are asked here answer, however busy the machine is
	return strict{a}
}

func (s strict) Facts() driver.Facts {
	f := s.Advisory.Facts()
	f.Waives = slices.DeleteFunc(slices.Clone(f.Waives), func(w driver.Waiver) bool { return w.Law == 22 })
	return f
}

func TestConformanceOfAdvisoryLocks(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	p := servers.SharedPostgres(t)
	drivertest.Run(t, drivertest.Harness{Name: "pgadvisory", Unfit: unfit, New: func(t testing.TB) drivertest.Storage {
		rawURL := advisory(newStore(t, p))
		return drivertest.Storage{
			Open: func(t testing.TB) driver.Store { return openStrict(t, rawURL) },
			Kill: func(s driver.Store) { s.Close() }, // the end of a process closes its connections too
			Cut: func(t testing.TB) (driver.Store, drivertest.Link) {
				link := newWire(t, p.Addr())
				return drivertest.Wrap(open(t, with(t, rawURL, link.p.Addr())), link.Around), link
			},
			Slack: slack,
		}
	}})
}
