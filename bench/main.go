// Command bench measures dibs beside a raw floor: the fewest bare operations of
// the same driver that could do the same, interleaved with dibs in the same run,
// so that the machine's moods hit both. What counts is the ratio; the absolute
// figures are this machine's.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 15, "how many rounds of floor and dibs each case takes")
	each := flag.Duration("for", 300*time.Millisecond, "how long each side runs in a round")
	write := flag.String("write", "", "write the report to this file too")
	flag.Parse()
	if err := run(*rounds, *each, *write); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(rounds int, each time.Duration, write string) error {
	dir, err := os.MkdirTemp("", "dibs-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	cases, done, err := sqliteCases(ctx, dir)
	if err != nil {
		return err
	}
	var results []result
	for _, c := range cases {
		fmt.Fprintf(os.Stderr, "bench: %s\n", c.name)
		r, err := c.measure(ctx, rounds, each)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		results = append(results, r)
	}
	if err := done(); err != nil {
		return err
	}
	text := report(results, rounds, each)
	fmt.Print(text)
	if write == "" {
		return nil
	}
	return os.WriteFile(write, []byte(text), 0o644)
}
