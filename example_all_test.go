package dibs_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dibslock/dibs"
)

// A transfer needs both accounts. In whatever order they are named, two transfers
// can't deadlock each other.
func ExampleClient_All() {
	ctx := context.Background()
	c, _ := dibs.Open(ctx, "mem://", nil)
	defer c.Close(ctx)

	transfer := c.All(c.Mutex("accounts/ann"), c.Mutex("accounts/bob"))
	err := transfer.Do(ctx, func(ctx context.Context) error {
		lease, _ := dibs.FromContext(ctx)
		fmt.Println("fences:", len(lease.Fences()))

		back := c.All(c.Mutex("accounts/carol"), c.Mutex("accounts/bob"))
		_, err := back.TryLock(ctx)
		var held *dibs.HeldError
		fmt.Println(errors.As(err, &held), held.Name)
		return nil
	})
	fmt.Println(err)
	// Output:
	// fences: 2
	// true accounts/bob
	// <nil>
}
