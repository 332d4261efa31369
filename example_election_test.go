package dibs_test

import (
	"context"
	"fmt"

	"github.com/dibslock/dibs"
)

// One of the instances leads. The next one does as soon as it has stopped.
func ExampleElection_Lead() {
	ctx := context.Background()
	c, _ := dibs.Open(ctx, "mem://", nil)
	defer c.Close(ctx)

	scheduler := c.Election("scheduler")
	err := scheduler.Lead(ctx, func(ctx context.Context) error {
		leader, err := scheduler.Leader(ctx)
		fmt.Println(leader.Name, "is led, fence", leader.Fence, err)
		// Work until ctx ends; to return earlier ends the leadership.
		return nil
	})
	fmt.Println(err)
	// Output:
	// scheduler is led, fence 1 <nil>
	// <nil>
}
