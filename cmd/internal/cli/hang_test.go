package cli_test

import (
	"context"
	"iter"
	"net/url"
	"os"

	"github.com/dibslock/dibs/driver"

	_ "github.com/dibslock/dibs/memlock"
	_ "github.com/dibslock/dibs/pglock"
	_ "github.com/dibslock/dibs/redislock"
	_ "github.com/dibslock/dibs/sqlitelock"
)

// The scheme hang is SQLite that hangs while there is a file beside it:
// hang:///path/locks.db hangs while /path/locks.db.hang exists, and can't be
// opened while /path/locks.db.down exists.
func init() { driver.Register("hang", openHanging) }

type hanging struct {
	driver.Store
	flag string
}

func openHanging(ctx context.Context, u *url.URL) (driver.Store, error) {
	if _, err := os.Stat(u.Path + ".down"); err == nil {
		return nil, os.ErrDeadlineExceeded
	}
	inner := *u
	inner.Scheme = "sqlite"
	store, err := driver.Open(ctx, inner.String())
	if err != nil {
		return nil, err
	}
	return &hanging{store, u.Path + ".hang"}, nil
}

// hang waits for the end of ctx if the store is to hang.
func (h *hanging) hang(ctx context.Context) error {
	if _, err := os.Stat(h.flag); err != nil {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (h *hanging) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := h.hang(ctx); err != nil {
		return driver.Grant{}, err
	}
	return h.Store.Acquire(ctx, c)
}

func (h *hanging) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	if err := h.hang(ctx); err != nil {
		return nil, err
	}
	return h.Store.Renew(ctx, cs)
}

func (h *hanging) Release(ctx context.Context, c driver.Claim) error {
	if err := h.hang(ctx); err != nil {
		return err
	}
	return h.Store.Release(ctx, c)
}

func (h *hanging) Watch(ctx context.Context, c driver.Claim) (<-chan driver.Signal, func(), error) {
	return h.Store.(driver.Watcher).Watch(ctx, c)
}

func (h *hanging) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return h.Store.(driver.Lister).List(ctx, prefix)
}
