package cli

import (
	"slices"
	"strings"
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
	full, shared := map[string]string{"redis://": notPlain, "postgres://": notShedlock}, ", also with the other layout"
	for scheme, s := range map[string]driver.Store{
		"sqlite://":            open("sqlite://" + t.TempDir() + "/locks.db"),
		"redis://":             open("redis://" + redis.Addr() + "?prefix=able&journal=on"),
		"redis://" + shared:    open("redis://" + redis.Addr() + "?prefix=able&layout=plain"),
		"postgres://":          open("postgres" + on),
		"postgres://" + shared: open("postgres" + on + "&layout=shedlock"),
		"pgadvisory://":        open("pgadvisory" + on),
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
			name, other := strings.CutSuffix(scheme, shared)
			named := slices.Contains(stores, name)
			if not := full[name]; not != "" && !other && slices.Contains(stores, name+not) {
				if named {
					t.Errorf("to %s: %s is named twice in %q", ability, name, stores)
				}
				named = true
			}
			if named != can {
				t.Errorf("to %s: %s is able: %v; named in %q", ability, scheme, can, stores)
			}
		}
	}
}
