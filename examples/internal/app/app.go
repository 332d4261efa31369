// Package app is what the examples have in common, so that each can be about one
// idea: the store that the user names, an end by a signal, a database.
package app

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dibslock/dibs"
	_ "github.com/dibslock/dibs/pglock"     // postgres:// and pgadvisory://
	_ "github.com/dibslock/dibs/redislock"  // redis:// and its kin
	_ "github.com/dibslock/dibs/sqlitelock" // sqlite://
)

var (
	store = flag.String("store", os.Getenv("DIBS_STORE_URL"), "`URL` of the store of locks; default $DIBS_STORE_URL, or a SQLite file that all examples on this host share")
	ttl   = flag.Duration("ttl", 0, "how long a dead holder blocks others; default 30s")
)

// Main parses the flags, opens the store, runs, and gives back what is held, also
// when it is interrupted. It doesn't return.
func Main(run func(ctx context.Context, c *dibs.Client) error) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := open(ctx, run)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func open(ctx context.Context, run func(ctx context.Context, c *dibs.Client) error) error {
	url := *store
	if url == "" {
		url = "sqlite://" + filepath.Join(os.TempDir(), "dibs-examples.db")
	}
	c, err := dibs.Open(ctx, url, &dibs.Options{Settings: dibs.Settings{TTL: *ttl}})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	return run(ctx, c)
}
