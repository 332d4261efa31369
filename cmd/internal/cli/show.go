package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/driver"
)

func newShow() *cobra.Command {
	var o listing
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show who holds a key and who waits for it",
		Long: `Show who holds a key and who waits for it, in the order of the line. It exits 0
also if the key is free. With --json it prints one object, as ls --json does.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("want one key, and not %d; usage: dibs show KEY", len(args))
			}
			key := args[0]
			if err := checkKey(key); err != nil {
				return err
			}
			all, err := o.read(cmd, key, func(k string) bool { return k == key })
			status := freeKey(key)
			if len(all) > 0 {
				status = all[0] // an error is about another key that begins like this one
			} else if err != nil {
				return err
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), status)
			}
			return describe(cmd.OutOrStdout(), time.Now(), status)
		},
	}
	o.flags(cmd)
	return cmd
}

// checkKey refuses a key that no store takes.
func checkKey(key string) error {
	var re *driver.RejectedError
	if errors.As(driver.CheckName(key), &re) {
		return usagef("the key %s can't be locked: %s", quote(re.Name), re.Why)
	}
	return nil
}

func describe(w io.Writer, now time.Time, k keyStatus) error {
	if len(k.Holders)+len(k.Waiters) == 0 {
		_, err := fmt.Fprintf(w, "%s is free\n", quote(k.Key))
		return err
	}
	fmt.Fprintf(w, "%s\n", quote(k.Key))
	for _, c := range k.Holders {
		h := c.holder
		fmt.Fprintf(w, "  %s: %s\n    %s%s", c.State, orDash(printable(c.Note)), modeOf(c), heldSince(now, &h, ", "))
		if left := leftOf(&h); left != "" {
			fmt.Fprintf(w, ", expires in %s", left)
		}
		switch {
		case h.Foreign && h.Left > 0:
			fmt.Fprint(w, " unless extended")
		case !h.Foreign && h.State == driver.Held:
			fmt.Fprintf(w, " unless renewed (ttl %s)", short(h.TTL))
		}
		if c.Fence != "" {
			fmt.Fprintf(w, ", fence %s", c.Fence)
		}
		if c.Token != "" {
			fmt.Fprintf(w, ", token %s", c.Token)
		}
		fmt.Fprintln(w)
	}
	for i, c := range k.Waiters {
		fmt.Fprintf(w, "  waiting, %d in line: %s\n    %s, %s\n", i+1, orDash(printable(c.Note)), modeOf(c), since(now, c.holder.Age))
	}
	return nil
}
