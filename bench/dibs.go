package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dibslock/dibs"
)

// dibsOn is dibs itself on the store at url, in which %s is where the server is.
func dibsOn(store, url string, sends ...string) player {
	return player{
		name:  "dibs on " + store,
		sends: sends,
		open: func(ctx context.Context, where string, ttl time.Duration) (client, error) {
			c, err := dibs.Open(ctx, fmt.Sprintf(url, where), &dibs.Options{Settings: dibs.Settings{TTL: ttl}})
			if err != nil {
				return nil, err
			}
			return dibsClient{c}, nil
		},
	}
}

type dibsClient struct{ c *dibs.Client }

func (d dibsClient) lock(ctx context.Context, name string) (lease, error) {
	l, err := d.c.Mutex(name).Lock(ctx)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (d dibsClient) Close() error { return d.c.Close(context.Background()) }
