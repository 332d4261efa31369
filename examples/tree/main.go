// Command tree locks a node of a tree and all that is below it: a backup of a tenant
// excludes work on each of its projects, and two projects don't exclude each other.
//
//	tree tenants/acme/projects/web    # holds one project
//	tree tenants/acme/projects/shop   # beside it
//	tree tenants/acme                 # busy, while any of the two is held
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/examples/internal/app"
)

func main() { app.Main(run) }

func run(ctx context.Context, c *dibs.Client) error {
	if flag.NArg() != 1 {
		return errors.New("usage: tree [flags] PATH; it holds the path until its standard input ends")
	}
	path := flag.Arg(0)
	err := c.Path(path).TryDo(ctx, func(ctx context.Context) error {
		fmt.Println("holding", path)
		return untilEOF(ctx)
	})
	if held, ok := errors.AsType[*dibs.HeldError](err); ok {
		fmt.Println("busy:", held.Name)
		return nil
	}
	return err
}

// untilEOF returns when the standard input ends, or ctx.
func untilEOF(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { // ends with the input, or the process
		_, err := io.Copy(io.Discard, os.Stdin)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
