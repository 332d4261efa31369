package cli

import (
	"github.com/spf13/cobra"

	"github.com/dibslock/dibs"
)

const runLong = `Run CMD while holding KEY, so that it runs once at a time everywhere where the
store is reached. If KEY is held elsewhere, dibs exits 75 at once and runs
nothing; with --wait it waits in line. With several keys (-k A -k B) it holds all of
them or none.

Flags stand anywhere before --. What follows it is the command and its arguments,
untouched. The command runs in a process group of its own; HUP INT QUIT TERM USR1
USR2 WINCH CONT TSTP are passed on to the group. The lock is renewed while the
command runs and given back when the whole group has ended: what the command left
in the background gets TERM, and after --kill-after KILL. The second interrupt in
5s that reaches dibs itself is followed by TERM, the third by KILL.

If the lock can't be kept, because the store doesn't answer or an operator
revoked it, all that the command has started gets TERM and after --grace KILL,
before the store can let another in. On Linux a guardian process does the same if
dibs is stopped; if dibs is killed, it leaves nothing of the command. Only if both
are killed at once, what the command has started may run on.

At a terminal (on Linux) the command has the foreground. Ctrl-Z stops dibs too, and
the lock isn't renewed until fg: a stop that is longer than --ttl loses it, and the
command is killed.

The command's environment has DIBS_KEY, DIBS_FENCE (a number that grows with every
holder; have the resource refuse smaller ones), DIBS_RUN_ID, DIBS_MODE, DIBS_TTL,
DIBS_STORE, and DIBS_KEYS (a line for each key held by this run and the runs around
it: key, store, process id, fence, separated by tabs). Of several keys DIBS_KEY and
DIBS_FENCE are the first's.

The store is --store, or $DIBS_STORE_URL, or the URL in the file
$DIBS_STORE_URL_FILE, or a file of this host: /var/lib/dibs/locks.db for root,
$XDG_STATE_HOME/dibs/locks.db for others (-v prints it). Users with files of their
own don't exclude each other's jobs.`

func newRun() *cobra.Command {
	r := newRunner("run", "key")
	cmd := r.command(func(s *session) error {
		lockers := make([]*dibs.Locker, len(r.names))
		for i, name := range r.names {
			lockers[i] = s.client.Semaphore(name, r.slots.value, 1)
			if r.shared {
				lockers[i] = s.client.Reader(name)
			}
		}
		locker := lockers[0]
		if len(lockers) > 1 {
			locker = s.client.All(lockers...)
		}
		lease, err := s.lock(locker)
		if err != nil {
			return err
		}
		return s.hold(lease, func() error { return s.execute(lease) })
	})
	cmd.Short = "Run a command while holding a key"
	cmd.Long = runLong + limits() + "\n\n" + exitCodes
	cmd.Example = `  dibs run nightly -- backup.sh
  dibs run nightly --wait=10m --timeout 1h -- backup.sh
  dibs run -k orders -k stock --wait -- reconcile  (both or none)
  */5 * * * *  dibs run -q -E 0 sync -- sync.sh    (crontab: a skip is no failure)
  dibs run -n 4 encode -- ffmpeg ...               (four at a time)`
	r.flags(
		cmd, "store", "key", "wait", "slots", "shared", "ttl", "timeout", "kill-after", "on-lost", "grace", "conflict-exit-code",
		"meta", "reason", "at-least-for", "jitter", "if-store-down", "die-with-parent", "report", "events", "dry-run", "quiet", "verbose",
	)
	return cmd
}
