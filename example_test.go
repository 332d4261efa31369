package dibs_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dibslock/dibs"
	_ "github.com/dibslock/dibs/memlock"
)

// Three instances wake up; one sends the reminders, the others skip.
func Example() {
	ctx := context.Background()
	c, err := dibs.Open(ctx, "mem://", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)

	reminders := c.Mutex("invoice-reminders")
	err = reminders.TryDo(ctx, func(ctx context.Context) error {
		fmt.Println("sending reminders")
		// Another instance, meanwhile:
		err := reminders.TryDo(ctx, func(context.Context) error { return nil })
		fmt.Println("held:", errors.Is(err, dibs.ErrHeld))
		return nil
	})
	fmt.Println("done:", err)
	// Output:
	// sending reminders
	// held: true
	// done: <nil>
}

// A step that cannot be undone asks first, and tells the resource who it is.
func ExampleLease_Check() {
	ctx := context.Background()
	c, _ := dibs.Open(ctx, "mem://", nil)
	defer c.Close(ctx)

	lease, err := c.Mutex("orders/42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Release(ctx)

	if err := lease.Check(); err != nil {
		fmt.Println("stop:", err)
		return
	}
	fmt.Println("charge the card, fence", lease.Fence())
	// Output: charge the card, fence 1
}

func ExampleClient_Semaphore() {
	ctx := context.Background()
	c, _ := dibs.Open(ctx, "mem://", nil)
	defer c.Close(ctx)

	two := c.Semaphore("exports", 2, 1)
	for range 3 {
		_, err := two.TryLock(ctx)
		fmt.Println(errors.Is(err, dibs.ErrHeld))
	}
	// Output:
	// false
	// false
	// true
}

func ExampleClient_Holders() {
	ctx := context.Background()
	c, _ := dibs.Open(ctx, "mem://", &dibs.Options{Settings: dibs.Settings{Note: "ann@db1"}})
	defer c.Close(ctx)

	_, _ = c.Reader("catalogue").Lock(ctx)
	for h, err := range c.Holders(ctx, "") {
		fmt.Println(h.Name, h.Mode(), h.State, h.Note, err)
	}
	// Output: catalogue shared held ann@db1 <nil>
}
