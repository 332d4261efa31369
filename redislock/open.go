package redislock

import (
	"context"
	"fmt"
	"net/url"

	"github.com/dibslock/dibs/driver"
)

func init() {
	for _, scheme := range []string{"redis", "rediss", "redis+unix"} {
		driver.Register(scheme, openURL)
	}
}

func openURL(ctx context.Context, u *url.URL) (driver.Store, error) {
	c, err := parse(u)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.plain {
		return &Plain{s}, nil
	}
	return s, nil
}

// open connects to the server. A server that can't be reached is an unknown
// error: it may be there in a moment.
func open(ctx context.Context, c config) (*Store, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	s := newStore(c)
	l, err := newLink(ctx, c, s.inbox.greet)
	if cause := over(ctx); err != nil && cause != nil {
		return nil, fmt.Errorf("%w, while it was connecting to %s", cause, c.client.InitAddress[0])
	}
	if err != nil {
		return nil, failed(ctx, "", err)
	}
	s.link = l
	return s, nil
}

// newStore makes a store that has no way to its server yet.
func newStore(c config) *Store {
	closed := make(chan struct{})
	return (&Store{
		keys:     newKeys(c.prefix, c.plain),
		journal:  c.journal,
		replicas: c.replicas,
		senders:  &senders{closed: closed},
		closed:   closed,
		closing:  c.closing,
	}).furnish()
}
