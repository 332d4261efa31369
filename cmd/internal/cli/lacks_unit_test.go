package cli

import (
	"slices"
	"testing"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/internal/servers"
)

// What the command says of the stores that can do something is so.
func TestAble(t *testing.T) {
	t.Parallel()
	redis, postgres := servers.SharedRedis(t), servers.SharedPostgres(t)
	open := func(rawURL string) driver.Store {
		s, err := driver.Open(t.Context(), rawURL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	on := "://postgres@" + postgres.Addr() + "/postgres?sslmode=disable&schema=able&create=on"
	for scheme, s := range map[string]driver.Store{
		"sqlite://":                        open("sqlite://" + t.TempDir() + "/locks.db"),
		"redis://":                         open("redis://" + redis.Addr() + "?prefix=able&journal=on"),
		"redis:// (not with layout=plain)": open("redis://" + redis.Addr() + "?prefix=able&journal=on"),
		"postgres://":                      open("postgres" + on),
		"pgadvisory://":                    open("pgadvisory" + on),
		"redis://, also with layout=plain": open("redis://" + redis.Addr() + "?prefix=able&layout=plain"),
	} {
		_, lists := s.(driver.Lister)
		_, revokes := s.(driver.Revoker)
		_, tells := s.(driver.Journal)
		_, records := s.(driver.Records)
		f := s.Facts()
		for ability, can := range map[string]bool{
			canList: lists, canRevoke: revokes, canTellHistory: tells, canShare: f.Modes&driver.Shared != 0,
			canCount: f.Modes&driver.Counted != 0, canKeep: f.Waived(18) == "",
			canRemember: records && f.Fencing != driver.NoFencing, canLimit: records,
		} {
			stores := able[ability]
			switch scheme {
			case "redis://, also with layout=plain":
				if named := slices.Contains(stores, "redis://"); named != can {
					t.Errorf("to %s: redis:// with layout=plain is able: %v; named: %v", ability, can, named)
				}
			case "redis://", "redis:// (not with layout=plain)":
				if !can || slices.Contains(stores, "redis://") == slices.Contains(stores, "redis:// (not with layout=plain)") {
					t.Errorf("to %s: redis:// is able: %v; named in %q", ability, can, stores)
				}
			default:
				if named := slices.Contains(stores, scheme); named != can {
					t.Errorf("to %s: %s is able: %v; named: %v", ability, scheme, can, named)
				}
			}
		}
	}
}
