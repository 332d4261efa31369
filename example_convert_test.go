package dibs_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dibslock/dibs"
)

// Read, and write only if there is a reason to: nobody else gets in between.
func ExampleLease_Upgrade() {
	ctx := context.Background()
	c, _ := dibs.Open(ctx, "mem://", nil)
	defer c.Close(ctx)

	lease, _ := c.Reader("catalogue").Lock(ctx)
	other, _ := c.Reader("catalogue").Lock(ctx)
	err := lease.Upgrade(ctx)
	fmt.Println("beside another reader:", errors.Is(err, dibs.ErrHeld), lease.Check())

	_ = other.Release(ctx)
	fmt.Println("alone:", lease.Upgrade(ctx))
	fmt.Println("and back:", lease.Downgrade(ctx))
	// Output:
	// beside another reader: true <nil>
	// alone: <nil>
	// and back: <nil>
}
