package dibs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs"
)

// A rate limit per user, for all instances together.
func ExampleClient_Limit() {
	ctx := context.Background()
	c, _ := dibs.Open(ctx, "mem://", nil)
	defer c.Close(ctx)

	exports := c.Limit("exports of ann", 2, time.Hour)
	for range 3 {
		left, err := exports.Take(ctx)
		var limited *dibs.LimitedError
		if errors.As(err, &limited) { // a Retry-After for the client; nothing was used
			fmt.Println("429, try again in", limited.RetryAfter.Round(time.Minute))
			continue
		}
		fmt.Println("exporting,", left.Remaining, "left")
	}
	// Output:
	// exporting, 1 left
	// exporting, 0 left
	// 429, try again in 30m0s
}
