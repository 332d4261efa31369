package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

const forceUsage = "usage: dibs force-unlock KEY --token N"

func newForceUnlock() *cobra.Command {
	u := &unlocker{reason: text{kind: "TEXT"}}
	cmd := &cobra.Command{
		Use:   "force-unlock KEY --token N",
		Short: "Take a key away from its holder",
		Long: `Take the claim with token N (see dibs show KEY) away from its holder, after showing
what is broken. A claim that came after it is never hit: if the key is held under
another token, nothing is done and the exit code is 76.

The holder is told at its next renewal (a third of its TTL, or sooner), and stops
its command. Until it lets go, or its TTL ends, the key stays closed: nobody works
beside it. --now frees the key at once. Then the next one can be at work while the
former still is: only for a holder that is known to be gone.

It asks on a terminal. Without a terminal it needs --yes. --dry-run only shows.

With --glob the argument is a pattern, as in dibs ls, and what is taken away is
every claim that is shown, each by its own token.

With --json there is a line for each claim, an object with: key, token, now, done
(false: --dry-run, or it failed), error, claim (as in dibs ls, as it was).`,
		Example: `  dibs force-unlock nightly --token 1841 --reason "host is gone"
  dibs force-unlock --glob 'ci/*' --dry-run`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			u.out, u.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if err := u.check(args); err != nil {
				return err
			}
			return u.run(cmd)
		},
	}
	u.flags(cmd)
	f := cmd.Flags()
	f.Var(&u.token, "token", "the token of the claim to take away")
	f.BoolVar(&u.now, "now", false, "free the key at once, without waiting for the holder")
	f.Var(&u.reason, "reason", "why, for the history")
	f.BoolVarP(&u.yes, "yes", "y", false, "don't ask")
	f.BoolVar(&u.dryRun, "dry-run", false, "only show what would be taken away")
	f.BoolVar(&u.many, "glob", false, "take away everything that a pattern matches")
	return cmd
}

// An unlocker is one dibs force-unlock.
type unlocker struct {
	listing
	token    token
	now      bool
	reason   text
	yes      bool
	dryRun   bool
	many     bool
	key      string
	glob     *glob
	out, err io.Writer
}

// An unlocked is the JSON of one claim that was taken away, or would be.
type unlocked struct {
	Key   string      `json:"key"`
	Token string      `json:"token"`
	Now   bool        `json:"now"`
	Done  bool        `json:"done"`
	Error string      `json:"error,omitempty"`
	Claim claimStatus `json:"claim"`
}

func (u *unlocker) check(args []string) (err error) {
	switch {
	case u.many && len(args) != 1:
		return usagef("want one pattern, in quotes; usage: dibs force-unlock --glob PATTERN --dry-run")
	case u.many && u.token.given:
		return usagef("--glob and --token exclude each other: each claim goes by its own token")
	case len((caption{reason: u.reason.value}).extras()) > maxExtras:
		return usagef("--reason is too long; at most about %d bytes are allowed", maxExtras)
	case u.many:
		u.glob, err = newGlob(args[0])
		return err
	}
	u.key, err = oneKey(args, forceUsage)
	return err
}

func (u *unlocker) run(cmd *cobra.Command) error {
	ctx, cancel := asking()
	q, err := u.open(ctx, cmd)
	if err != nil {
		cancel()
		return err
	}
	defer q.close()
	if _, ok := q.store.(driver.Revoker); !ok {
		cancel()
		return q.place.cannot(canRevoke, u.key, driver.Unsupportedf("%s has no way to take one claim away", q.store.Facts().Driver))
	}
	targets, err := u.targets(ctx, q)
	cancel() // a person may think for longer
	if err != nil || len(targets) == 0 {
		return err
	}
	if !u.json || !u.dryRun && !u.yes {
		u.show(targets)
	}
	if !u.dryRun && !u.yes {
		if err := u.ask(len(targets)); err != nil {
			return err
		}
	}
	var failed error
	for _, t := range targets {
		if err := u.unlock(q, t); err != nil {
			failed = err
			if u.many {
				say(u.err, "%v", err)
				failed = &failure{code: exitCode(err)}
			}
		}
	}
	if u.dryRun {
		say(u.err, "nothing was done (--dry-run)")
	}
	return failed
}

// unlock takes t away, and tells.
func (u *unlocker) unlock(q *question, t unlocked) error {
	ctx, cancel := asking()
	defer cancel()
	var err error
	if !u.dryRun {
		err = u.revoke(ctx, q, t)
		t.Done = err == nil
	}
	if u.json {
		if err != nil {
			t.Error = err.Error()
		}
		if e := printJSON(u.out, t); e != nil {
			return e
		}
	}
	switch {
	case err != nil:
		return err
	case u.dryRun:
	case u.now:
		say(u.err, "freed %s", quote(t.Key))
	default:
		say(u.err, "revoked %s", quote(t.Key))
	}
	return nil
}

func (u *unlocker) revoke(ctx context.Context, q *question, t unlocked) error {
	reason := fmt.Sprintf("%s@%s (pid %d): %s", userName(), hostName(), os.Getpid(), printable(u.reason.value))
	err := q.client.Revoke(ctx, dibs.Revocation{Name: t.Key, Token: t.Claim.holder.Token, Now: u.now, Reason: reason})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, dibs.ErrNotHeld):
		if k, e := q.key(ctx, t.Key); e == nil {
			return changed(k, t.Claim.holder.Token)
		}
	}
	return q.place.cannot(canRevoke, t.Key, err)
}

// exitCode is the code that err would end dibs with.
func exitCode(err error) int {
	code, _ := verdict(err)
	return code
}
