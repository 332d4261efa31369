// Command payment pays an order once, whatever happens to the instances that try:
// several at the same time, one that dies after the provider was asked, one that
// freezes and wakes up later.
//
// Three things work together, and none is enough alone. The lock has one instance at
// a time work on the order. The fence has the database refuse one that lost the lock
// and doesn't know it. And the provider, which can't check a fence, is asked with an
// idempotency key that is derived from the order: whoever asks again, for whatever
// reason, asks for the same payment.
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/examples/internal/app"
)

var (
	database = flag.String("db", "shop.db", "postgres://... or a SQLite `file`")
	provider = flag.String("provider", "", "`URL` of the payment provider")
	order    = flag.String("order", "1001", "the order to pay")
)

func main() { app.Main(run) }

func run(ctx context.Context, c *dibs.Client) error {
	db, err := app.OpenDB(*database)
	if err != nil {
		return err
	}
	defer db.Close()
	lease, err := c.Mutex("order/" + *order).Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	bound, stop := lease.Bind(ctx)
	defer stop()
	return pay(bound, db, lease)
}

func pay(ctx context.Context, db *app.DB, lease *dibs.Lease) error {
	var cents int
	var receipt string
	err := fenced(ctx, db, lease, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, db.Q("SELECT cents, receipt FROM orders WHERE id = ?"), *order).Scan(&cents, &receipt)
	})
	if err != nil {
		return err
	}
	if receipt != "" {
		fmt.Println("paid before:", receipt)
		return nil
	}
	if err := lease.Check(); err != nil {
		return err // nothing was asked for yet: leave it to the next holder
	}
	receipt, err = charge(ctx, cents)
	if err != nil {
		return err // perhaps it was charged: the next one asks with the same key
	}
	err = fenced(ctx, db, lease, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, db.Q("UPDATE orders SET receipt = ? WHERE id = ?"), receipt, *order)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println("paid:", receipt)
	return nil
}

// fenced does one thing in a transaction that refuses a lost lock.
func fenced(ctx context.Context, db *app.DB, lease *dibs.Lease, fn func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := db.Fence.Check(ctx, tx, lease); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// charge asks the provider. The key says what is paid for, and not by whom or when:
// a token in it would make a second payment of a second try.
func charge(ctx context.Context, cents int) (receipt string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, *provider, strings.NewReader(fmt.Sprintf("cents=%d", cents)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Idempotency-Key", "order-"+*order)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the provider says %s: %s", resp.Status, body)
	}
	return string(body), err
}
