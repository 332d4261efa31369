package main

import (
	"context"
	"io"
	"slices"
	"time"
)

// A player is one way to lock on a store: a raw floor, dibs, or a peer. It is one
// small file, with its library's usual settings.
type player struct {
	name string // of this player alone, among all stores
	// open connects the client of one process. Locks last for ttl, and longer if
	// the player renews them.
	open func(ctx context.Context, where string, ttl time.Duration) (client, error)
	// seed, if it is set, prepares names on an empty store.
	seed func(ctx context.Context, where string, names []string) error
	// sends are the kinds of command that the client sends by itself, and not from
	// inside a script.
	sends []string
}

// A client locks by name. Many goroutines use it at once.
type client interface {
	// lock waits until name is ours.
	lock(ctx context.Context, name string) (lease, error)
	io.Closer
}

// A lease is a lock held.
type lease interface {
	Release(ctx context.Context) error
}

// on is p with another name, on those of the servers that pick picks of where they
// all are.
func (p player) on(servers string, pick func(where string) string) player {
	open := p.open
	p.name += " on " + servers
	p.open = func(ctx context.Context, where string, ttl time.Duration) (client, error) {
		return open(ctx, pick(where), ttl)
	}
	return p
}

// playerNamed looks up a player of any contest.
func playerNamed(name string) (player, bool) {
	for _, s := range stores {
		for _, c := range s.contests {
			for _, p := range c.players {
				if p.name == name {
					return p, true
				}
			}
		}
	}
	return player{}, false
}

// sent tells whether commands of this kind come from p's client.
func (p player) sent(kind string) bool {
	return kind == "evalsha" || kind == "eval" || kind == "ping" || slices.Contains(p.sends, kind)
}
