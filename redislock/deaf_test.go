package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/internal/servers"
)

// A user without the channels, or a server that lets nobody subscribe, takes no
// lock from anybody: who waits polls, and doctor says so.
func TestWithoutChannelsEverythingWorks(t *testing.T) {
	t.Parallel()
	deafen := func(url, params string, some ...*servers.RedisServer) string {
		words := rightsOf(t, url+"/?"+params)
		for i, word := range words {
			if strings.HasPrefix(word.(string), "&") {
				words = append(words[:i:i], words[i+1:]...)
				break
			}
		}
		if strings.Contains(params, "layout=plain") {
			words = append(words, "~*")
		}
		for _, r := range some {
			do(t, r, words...)
		}
		return strings.Replace(url, "://", "://locker:secret@", 1)
	}
	for name, open := range map[string]func(t *testing.T, params string) (url string){
		"one server": func(t *testing.T, params string) string {
			r := servers.Redis(t)
			return deafen("redis://"+r.Addr(), params, r) + "/?" + params
		},
		"the plain layout": func(t *testing.T, params string) string {
			r := servers.Redis(t)
			params += "&layout=plain"
			return deafen("redis://"+r.Addr(), params, r) + "/?" + params
		},
		"sentinels": func(t *testing.T, params string) string {
			s := servers.Sentinels(t, 1)
			return deafen("redis-sentinel://"+strings.Join(s.Addrs(), ",")+"/"+s.Name, params, s.Servers...) + "?" + params
		},
		"a cluster": func(t *testing.T, params string) string {
			c := servers.Cluster(t, 3)
			return deafen("redis-cluster://"+strings.Join(c.Addrs(), ","), params, c.Nodes...) + "/?" + params
		},
		"no SUBSCRIBE": func(t *testing.T, params string) string {
			r := servers.Redis(t, servers.RedisArgs("--rename-command", "SUBSCRIBE", ""))
			return "redis://" + r.Addr() + "/?" + params
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := open(t, space())
			if err := polls(t, url); err != nil {
				t.Error(err)
			}
			found, err := openURL(t, url).(driver.Diagnoser).Diagnose(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			warned := false
			for _, f := range found {
				warned = warned || f.Check == "signals" && f.Level == driver.Warn
			}
			if !warned {
				t.Errorf("no warning of the signals in %+v", found)
			}
		})
	}
}

// polls has one client wait for the lock that another has.
func polls(t *testing.T, url string) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waits := make(chan struct{}, 100)
	a, err := dibs.Open(ctx, url, nil)
	if err != nil {
		return err
	}
	defer a.Close(ctx)
	b, err := dibs.Open(ctx, url, &dibs.Options{Hooks: dibs.Hooks{Waiting: func(context.Context, dibs.AcquireInfo, *dibs.HeldError) {
		select {
		case waits <- struct{}{}:
		default:
		}
	}}})
	if err != nil {
		return err
	}
	defer b.Close(ctx)
	held, err := a.Mutex("name").Lock(ctx)
	if err != nil {
		return err
	}
	released := make(chan error, 1)
	go func() { // ends when b waits
		<-waits
		released <- held.Release(ctx)
	}()
	lease, err := b.Mutex("name").Lock(ctx)
	if err != nil {
		return errors.Join(err, fmt.Errorf("release: %w", <-released))
	}
	return errors.Join(<-released, lease.Release(ctx))
}
