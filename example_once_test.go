package dibs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs"
)

// A payment with an idempotency key: the second request gets the first one's
// receipt, and another request under the same key is found out.
func ExampleOnce_Call() {
	ctx := context.Background()
	c, _ := dibs.Open(ctx, "mem://", nil)
	defer c.Close(ctx)

	pay := func(amount string) {
		payment := c.Once("idempotency-key-42", 24*time.Hour).With(dibs.OnceOptions{Request: "amount=" + amount})
		receipt, ran, err := payment.Call(ctx, func(ctx context.Context, run dibs.Run) ([]byte, error) {
			// run.Fence is for the payment's own table, run.Again says that one before
			// was interrupted.
			return []byte("receipt for " + amount), nil
		})
		if errors.Is(err, dibs.ErrMismatch) {
			fmt.Println("422:", err)
			return
		}
		fmt.Printf("%s, charged now: %t\n", receipt, ran)
	}
	pay("10 EUR")
	pay("10 EUR")
	pay("99 EUR")
	// Output:
	// receipt for 10 EUR, charged now: true
	// receipt for 10 EUR, charged now: false
	// 422: "idempotency-key-42": the key belongs to another request (amount=10 EUR, and not amount=99 EUR)
}

// A migration that runs on one instance, once, however many are started.
func ExampleOnce_Do() {
	ctx := context.Background()
	c, _ := dibs.Open(ctx, "mem://", nil)
	defer c.Close(ctx)

	migration := c.Once("migrations/2026-11-add-index", 365*24*time.Hour)
	for range 3 {
		ran, err := migration.Do(ctx, func(ctx context.Context) error {
			fmt.Println("adding the index")
			return nil
		})
		fmt.Println(ran, err)
	}
	// Output:
	// adding the index
	// true <nil>
	// false <nil>
	// false <nil>
}
