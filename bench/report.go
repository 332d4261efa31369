package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// report is the whole of RESULTS.md.
func report(results []result, rounds int, each time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results\n\nMade by `make bench`; do not edit. %s, %s/%s, %d cores, %s.\n", time.Now().UTC().Format("2006-01-02"),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	fmt.Fprintf(&b, "Each figure is the median of %d rounds of %v, floor and dibs in turn, with the quartiles behind it. ", rounds, each)
	fmt.Fprintf(&b, "The floor is a bare upsert and delete by the same driver, on a file of its own beside ours, with the same settings.\n\n")
	fmt.Fprintf(&b, "| case | floor, ops/s | dibs, ops/s | dibs' operations over the floor's | time over the floor's | asked for |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		_, floor, _ := spread(r.floors)
		_, ours, _ := spread(r.dibses)
		low, ratio, high := spread(r.ratios())
		fmt.Fprintf(&b, "| %s | %.0f | %.0f | %.2fx (%.2f-%.2f) | %.2fx | %s |\n", r.name, floor, ours, ratio, low, high, 1/ratio, r.bar)
	}
	fmt.Fprintf(&b, "\nLibraries: %s.\n", strings.Join(libraries(), ", "))
	return b.String()
}

// libraries tells which versions were measured.
func libraries() (out []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fmt.Fprintln(os.Stderr, "bench: no build info")
		return nil
	}
	for _, m := range info.Deps {
		if m.Path == "modernc.org/sqlite" {
			out = append(out, m.Path+" "+m.Version)
		}
	}
	return out
}
