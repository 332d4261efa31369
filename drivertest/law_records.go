package drivertest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var recordLaws = []law{
	{number: 46, name: "RecordsAreLinearizable", test: l46.run},
	{number: 47, name: "RecordsAreFenced", test: l47.run},
	{number: 48, name: "RecordsOutliveTheirWriter", test: l48.run},
}

// records returns the power of s; ok is false if it has none.
func records(t testing.TB, s driver.Store) (p driver.Records, ok bool) {
	t.Helper()
	p, ok = s.(driver.Records)
	if !ok {
		return nil, false
	}
	_, _, err := p.Get(t.Context(), "law/none")
	return p, !errors.Is(err, errors.ErrUnsupported)
}

// put writes r and returns its new version.
func put(t testing.TB, p driver.Records, r driver.Record) uint64 {
	t.Helper()
	v, err := p.Put(t.Context(), r)
	if err != nil {
		t.Fatalf("put %q: %v", r.Key, err)
	}
	if v <= r.Version {
		t.Fatalf("put %q: version %d after %d", r.Key, v, r.Version)
	}
	return v
}

// get reads the record at key.
func get(t testing.TB, p driver.Records, key string) driver.Record {
	t.Helper()
	r, _, err := p.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	if r.Key != key && r.Version != 0 {
		t.Fatalf("get %q: got %q", key, r.Key)
	}
	return r
}

// isStale checks that err says that the version is another.
func isStale(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, driver.ErrStale) || errors.Is(err, driver.ErrFenced) || !driver.Certain(err) {
		t.Fatalf("%s: got %v, want an ErrStale", what, err)
	}
}

// recordParts skips the law on a store without records.
type recordParts []struct {
	name string
	test func(t *testing.T, s *Stage, a, b driver.Records)
}

func (ps recordParts) run(t *testing.T, s *Stage) {
	if _, ok := records(t, s.Open(t)); !ok {
		t.Skip("the store keeps no records")
	}
	var all parts
	for _, p := range ps {
		all = append(all, part{p.name, func(t *testing.T, s *Stage) {
			a, _ := records(t, s.Open(t))
			b, _ := records(t, s.Open(t))
			p.test(t, s, a, b)
		}})
	}
	all.run(t, s)
}

var l46 = recordParts{
	{"Versions", func(t *testing.T, s *Stage, a, b driver.Records) {
		key := fresh()
		if r := get(t, a, key); r.Version != 0 || len(r.Value) != 0 || r.Token != 0 || r.TokenName != "" {
			t.Fatalf("there is no record, and Get has %+v", r)
		}
		r := driver.Record{Key: key, Value: []byte("one"), Retention: time.Hour}
		r.Version = put(t, a, r)
		check := func(value string, version uint64) {
			t.Helper()
			for _, p := range []driver.Records{a, b} {
				if got := get(t, p, key); string(got.Value) != value || got.Version != version {
					t.Fatalf("wrote %q as version %d, read %q, %d", value, version, got.Value, got.Version)
				}
			}
		}
		check("one", r.Version)
		for _, version := range []uint64{0, r.Version - 1, r.Version + 1} {
			if version == r.Version {
				continue
			}
			_, err := b.Put(t.Context(), driver.Record{Key: key, Value: []byte("no"), Version: version, Retention: time.Hour})
			isStale(t, "put", err)
			isStale(t, "delete", b.Delete(t.Context(), key, version))
			check("one", r.Version)
		}
		old := r.Version
		r.Value = []byte("two")
		r.Version = put(t, b, r)
		check("two", r.Version)
		isStale(t, "delete", a.Delete(t.Context(), key, old))
		if err := a.Delete(t.Context(), key, r.Version); err != nil {
			t.Fatalf("delete: %v", err)
		}
		if got := get(t, b, key); got.Version != 0 || len(got.Value) != 0 {
			t.Fatalf("deleted, and Get has %+v", got)
		}
		_, err := a.Put(t.Context(), r)
		isStale(t, "put over a deleted record", err)
		isStale(t, "delete again", a.Delete(t.Context(), key, r.Version))
		// No version comes back: who knows one from before the delete is stale.
		last := r.Version
		r.Version, r.Value = 0, []byte("three")
		r.Version = put(t, a, r)
		newer(t, last, r.Version)
		check("three", r.Version)
		isStale(t, "delete of the earlier life", b.Delete(t.Context(), key, last))
	}},
	{"Values", func(t *testing.T, s *Stage, a, b driver.Records) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for _, value := range [][]byte{nil, {0}, all, []byte("{\"a\": 1}"), bytes.Repeat([]byte{0xff}, driver.MaxRecord)} {
			r := driver.Record{Key: fresh(), Value: slices.Clone(value), Retention: time.Hour}
			put(t, a, r)
			clear(r.Value) // the store has its own
			got := get(t, b, r.Key)
			if !bytes.Equal(got.Value, value) {
				t.Fatalf("%d bytes came back as %d, or changed", len(value), len(got.Value))
			}
			clear(got.Value)
			if again := get(t, a, r.Key); !bytes.Equal(again.Value, value) {
				t.Fatal("what one reader does to a value is seen by the next")
			}
		}
		key := fresh()
		_, err := a.Put(t.Context(), driver.Record{Key: key, Value: make([]byte, driver.MaxRecord+1), Retention: time.Hour})
		isRejected(t, "a value over the limit", err)
		if r := get(t, a, key); r.Version != 0 {
			t.Fatal("it was rejected and applied")
		}
	}},
	{"BadKeys", func(t *testing.T, s *Stage, a, b driver.Records) {
		for what, key := range badNames {
			_, err := a.Put(t.Context(), driver.Record{Key: key, Retention: time.Hour})
			isRejected(t, what+": put", err)
			_, _, err = a.Get(t.Context(), key)
			isRejected(t, what+": get", err)
			isRejected(t, what+": delete", a.Delete(t.Context(), key, 1))
		}
	}},
	{"KeysNeverMeet", func(t *testing.T, s *Stage, a, b driver.Records) {
		for _, key := range oddNames() {
			put(t, a, driver.Record{Key: key, Value: []byte(key), Retention: time.Hour})
		}
		for _, key := range oddNames() {
			r := get(t, b, key)
			if string(r.Value) != key {
				t.Fatalf("at %q there is %q", key, r.Value)
			}
			if err := b.Delete(t.Context(), key, r.Version); err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"Now", func(t *testing.T, s *Stage, a, b driver.Records) {
		_, first, err := a.Get(t.Context(), fresh())
		if err != nil {
			t.Fatal(err)
		}
		if s.Bubble && !first.Equal(time.Now()) {
			t.Fatalf("the store's now is %v", first)
		}
		time.Sleep(s.tick())
		_, second, err := b.Get(t.Context(), fresh())
		if err != nil {
			t.Fatal(err)
		}
		if d := second.Sub(first); d < s.tick()/2 || d > 10*s.tick() {
			t.Fatalf("the store's now moved by %v in %v", d, s.tick())
		}
	}},
	{"Counter", func(t *testing.T, s *Stage, a, b driver.Records) {
		// Increments by several clients: none is lost and none counts twice.
		const clients = 4
		each := 10
		if s.Bubble {
			each = 100
		}
		key := fresh()
		var wg sync.WaitGroup
		for i := range clients {
			p := []driver.Records{a, b}[i%2]
			wg.Go(func() { // ends after its increments
				for done := 0; done < each; {
					r, _, err := p.Get(t.Context(), key)
					if err != nil {
						t.Errorf("get: %v", err)
						return
					}
					if len(r.Value) == 0 {
						r.Value = make([]byte, 8)
					}
					binary.BigEndian.PutUint64(r.Value, binary.BigEndian.Uint64(r.Value)+1)
					r.Key, r.Retention = key, time.Hour
					time.Sleep(time.Millisecond) // let another in
					switch _, err := p.Put(t.Context(), r); {
					case err == nil:
						done++
					case !errors.Is(err, driver.ErrStale):
						t.Errorf("put: %v", err)
						return
					}
				}
			})
		}
		wg.Wait()
		if n := binary.BigEndian.Uint64(get(t, a, key).Value); n != uint64(clients*each) {
			t.Fatalf("%d increments, and the counter is %d", clients*each, n)
		}
	}},
}

var l47 = recordParts{
	{"LargerWasSeen", func(t *testing.T, s *Stage, a, b driver.Records) {
		lease := fresh()
		r := driver.Record{Key: fresh(), Value: []byte("by 7"), TokenName: lease, Token: 7, Retention: time.Hour}
		check := func(name string, token uint64, value string) {
			t.Helper()
			if got := get(t, b, r.Key); got.TokenName != name || got.Token != token || string(got.Value) != value || got.Version != r.Version {
				t.Fatalf("want %q by %d of %q, got %+v", value, token, name, got)
			}
		}
		r.Version = put(t, a, r)
		check(lease, 7, "by 7")
		late := r
		late.Value, late.Token = []byte("by 6"), 6 // with the right version
		_, err := b.Put(t.Context(), late)
		if !errors.Is(err, driver.ErrFenced) || errors.Is(err, driver.ErrStale) || !driver.Certain(err) {
			t.Fatalf("token 6 after 7: %v", err)
		}
		check(lease, 7, "by 7")
		r.Value = []byte("by 7 again")
		r.Version = put(t, a, r)
		check(lease, 7, "by 7 again")
		r.Value, r.Token = []byte("by 9"), 9
		r.Version = put(t, a, r)
		check(lease, 9, "by 9")
		// A larger token does not make up for a stale version.
		stale := r
		stale.Token, stale.Version = 10, r.Version-1
		_, err = a.Put(t.Context(), stale)
		isStale(t, "put with a larger token", err)
		check(lease, 9, "by 9")
	}},
	{"WithoutOneKeepsIt", func(t *testing.T, s *Stage, a, b driver.Records) {
		r := driver.Record{Key: fresh(), TokenName: fresh(), Token: 7, Retention: time.Hour}
		r.Version = put(t, a, r)
		plain := driver.Record{Key: r.Key, Value: []byte("plain"), Version: r.Version, Retention: time.Hour}
		r.Version = put(t, b, plain)
		if got := get(t, a, r.Key); got.TokenName != r.TokenName || got.Token != 7 || string(got.Value) != "plain" {
			t.Fatalf("a put without a token left %+v", got)
		}
		r.Token = 6
		if _, err := a.Put(t.Context(), r); !errors.Is(err, driver.ErrFenced) {
			t.Fatalf("token 6 after 7 and one without: %v", err)
		}
	}},
	{"AnotherNameReplacesBoth", func(t *testing.T, s *Stage, a, b driver.Records) {
		first := fresh()
		r := driver.Record{Key: fresh(), TokenName: first, Token: 7, Retention: time.Hour}
		r.Version = put(t, a, r)
		r.TokenName, r.Token = fresh(), 3
		stale := r
		stale.Version--
		_, err := a.Put(t.Context(), stale)
		isStale(t, "put by another name", err)
		r.Version = put(t, a, r)
		if got := get(t, b, r.Key); got.TokenName != r.TokenName || got.Token != 3 {
			t.Fatalf("want token 3 of %q, got %+v", r.TokenName, got)
		}
		r.TokenName, r.Token = first, 2
		put(t, a, r)
	}},
	{"NothingToFenceWith", func(t *testing.T, s *Stage, a, b driver.Records) {
		r := driver.Record{Key: fresh(), TokenName: fresh(), Retention: time.Hour}
		_, err := a.Put(t.Context(), r)
		isRejected(t, "token 0", err)
		if got := get(t, a, r.Key); got.Version != 0 {
			t.Fatal("it was rejected and applied")
		}
	}},
}

// recordKeys lists the keys that begin with prefix.
func recordKeys(t testing.TB, p driver.Records, prefix string) (keys []string) {
	t.Helper()
	for r, err := range p.ListRecords(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("list records: %v", err)
		}
		keys = append(keys, r.Key)
	}
	return keys
}
