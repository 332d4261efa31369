package dibs_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dibslock/dibs"
)

// Whoever deletes a tenant excludes all who work on its projects, and they exclude
// it, but not each other.
func ExampleClient_Path() {
	ctx := context.Background()
	c, _ := dibs.Open(ctx, "mem://", nil)
	defer c.Close(ctx)

	_, err := c.Path("tenants/acme/projects/1").TryLock(ctx)
	fmt.Println("project 1:", err)
	_, err = c.Path("tenants/acme/projects/2").TryLock(ctx)
	fmt.Println("project 2:", err)
	_, err = c.Path("tenants/acme").TryLock(ctx)
	fmt.Println("the tenant is held:", errors.Is(err, dibs.ErrHeld))
	// Output:
	// project 1: <nil>
	// project 2: <nil>
	// the tenant is held: true
}
