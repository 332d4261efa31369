package drivertest

import (
	"slices"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var l48 = recordParts{
	{"Retention", func(t *testing.T, s *Stage, a, b driver.Records) {
		r := driver.Record{Key: fresh(), Value: []byte("x"), Retention: 3 * s.tick()}
		r.Version = put(t, a, r)
		renewed := r
		renewed.Key, renewed.Version = fresh(), 0
		renewed.Version = put(t, a, renewed)
		c := s.clock()
		c.after(s.tick())
		c.left(t, "retention", get(t, b, r.Key).Retention, r.Retention)
		renewed.Version = put(t, a, renewed) // from this Put
		again := s.clock()
		c.before(r.Retention)
		if got := get(t, b, r.Key); got.Version != r.Version {
			t.Fatalf("it is gone before its retention: %+v", got)
		}
		c.after(r.Retention)
		if got := get(t, b, r.Key); got.Version != 0 {
			t.Fatalf("its retention has ended, and Get has %+v", got)
		}
		if keys := recordKeys(t, b, r.Key); len(keys) != 0 {
			t.Fatalf("its retention has ended, and it is listed: %q", keys)
		}
		_, err := a.Put(t.Context(), r)
		isStale(t, "put over a record that has ended", err)
		last := r.Version
		r.Version = 0
		newer(t, last, put(t, a, r))
		again.before(renewed.Retention)
		if got := get(t, b, renewed.Key); got.Version != renewed.Version {
			t.Fatalf("a later Put did not extend it: %+v", got)
		}
		again.after(renewed.Retention)
		if got := get(t, b, renewed.Key); got.Version != 0 {
			t.Fatalf("its retention has ended, and Get has %+v", got)
		}
	}},
	{"OutlivesItsWriter", func(t *testing.T, s *Stage, a, b driver.Records) {
		writer := s.Open(t)
		lease, _ := MustAcquire(t, writer, Mutex(fresh(), s.tick()))
		p, _ := records(t, writer)
		r := driver.Record{Key: fresh(), Value: []byte("done"), TokenName: lease.Name, Token: lease.Token, Retention: time.Hour}
		r.Version = put(t, p, r)
		s.die(t, writer, lease.TTL)
		if err := writer.Close(); err != nil && s.Kill == nil {
			t.Fatalf("close: %v", err)
		}
		free(t, a.(driver.Store), lease.Name, s.long())
		if got := get(t, b, r.Key); string(got.Value) != "done" || got.Version != r.Version {
			t.Fatalf("its writer died, and it is %+v", got)
		}
	}},
	{"Listed", func(t *testing.T, s *Stage, a, b driver.Records) {
		prefix := fresh()
		want := []string{prefix, prefix + "/B", prefix + "/a", prefix + "/b", prefix + "%"}
		slices.Sort(want)
		for i := range want {
			put(t, a, driver.Record{Key: want[len(want)-1-i], Value: []byte{byte(i)}, TokenName: "n", Token: 5, Retention: 2 * s.tick()})
		}
		c := s.clock()
		put(t, a, driver.Record{Key: fresh(), Retention: time.Hour})
		if keys := recordKeys(t, b, prefix); !slices.Equal(keys, want) {
			t.Fatalf("listed %q, want %q", keys, want)
		}
		for r, err := range b.ListRecords(t.Context(), prefix+"/a") {
			if err != nil || r.Key != prefix+"/a" || r.Version == 0 || len(r.Value) != 1 || r.Token != 5 || r.TokenName != "n" {
				t.Fatalf("listed %+v, %v", r, err)
			}
			c.left(t, "retention", r.Retention, 2*s.tick())
		}
		for range b.ListRecords(t.Context(), prefix) {
			break // and a listing may be left early
		}
		// As records and not as holders: the name is free.
		states(t, a.(driver.Store), prefix)
		free(t, a.(driver.Store), prefix, s.long())
		c.after(2 * s.tick())
		if keys := recordKeys(t, b, prefix); len(keys) != 0 {
			t.Fatalf("their retention has ended, and these are listed: %q", keys)
		}
	}},
	{"NoSpaceInCommonWithLocks", func(t *testing.T, s *Stage, a, b driver.Records) {
		store := a.(driver.Store)
		m, _ := MustAcquire(t, store, Mutex(fresh(), s.long()))
		r := driver.Record{Key: m.Name, Value: []byte("x"), Retention: time.Hour}
		r.Version = put(t, a, r)
		proved(t, store, m)
		MustRelease(t, store, m)
		if got := get(t, b, m.Name); got.Version != r.Version {
			t.Fatalf("the lock was released, and the record is %+v", got)
		}
		if err := a.Delete(t.Context(), m.Name, r.Version); err != nil {
			t.Fatal(err)
		}
		free(t, store, m.Name, s.long())
	}},
}
