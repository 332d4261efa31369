package drivertest

import (
	"errors"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var lossLaws = []law{
	{number: 14, name: "LossesAreTold", test: l14Losses.run},
}

var l14Losses = parts{
	{"Expired", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		feed := losses(t, s, a)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.tick()))
		released, _ := MustAcquire(t, a, Mutex(fresh(), s.tick()))
		MustRelease(t, a, released)
		MustAcquire(t, b, Mutex(fresh(), s.tick())) // another's
		s.clock().after(m.TTL)
		gone(t, a, m)
		lost := hearLoss(t, feed)
		isNotHeld(t, lost.Err)
		if lost.Name != m.Name || lost.ID != m.ID {
			t.Fatalf("lost %+v, told %+v", m, lost)
		}
		select {
		case more := <-feed:
			t.Fatalf("told of a loss that is none of ours: %+v", more)
		default:
		}
	}},
	{"Revoked", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		feed := losses(t, s, a)
		power[driver.Revoker](t, s, b)
		for _, now := range []bool{false, true} {
			m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
			revoke(t, b, m, now)
			lost := hearLoss(t, feed)
			if lost.Name != m.Name || lost.ID != m.ID || !errors.Is(lost.Err, driver.ErrNotHeld) || !now && !errors.Is(lost.Err, driver.ErrRevoked) {
				t.Fatalf("revoked %+v, told %+v", m, lost)
			}
		}
	}},
	{"Closed", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		p := power[driver.LossFeed](t, s, a)
		feed, err := p.Losses(bounded(t, s.tick()/2))
		if err != nil {
			t.Fatal(err)
		}
		s.clock().after(s.tick())
		select {
		case lost, open := <-feed:
			if open {
				t.Fatalf("%+v from a feed that has ended", lost)
			}
		default:
			t.Fatal("the ctx ended and the feed is open")
		}
	}},
}

// losses is the feed of store until the test ends.
func losses(t testing.TB, s *Stage, store driver.Store) <-chan driver.Loss {
	t.Helper()
	feed, err := power[driver.LossFeed](t, s, store).Losses(t.Context())
	if err != nil {
		t.Fatalf("losses: %v", err)
	}
	return feed
}

func hearLoss(t testing.TB, feed <-chan driver.Loss) driver.Loss {
	t.Helper()
	select {
	case lost, open := <-feed:
		if !open {
			t.Fatal("the feed was closed")
		}
		return lost
	case <-time.After(10 * time.Second):
		t.Fatal("no loss was told")
		return driver.Loss{}
	}
}
