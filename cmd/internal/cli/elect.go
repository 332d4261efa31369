package cli

import (
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"
)

const electLong = `Run CMD while this dibs leads NAME: while it holds the lock of that name. Others
that are elected on NAME stand by, and one of them runs its CMD when the leader is
gone.

If the leadership is lost, because the store doesn't answer or an operator revoked
it, all that the command has started gets TERM and after --grace KILL, before
another can lead; then dibs stands by again. A store that is down is waited for. On
Linux a guardian process stops the command if dibs is stopped or killed.

When CMD ends by itself, the leadership is given back and dibs exits with its code:
have a service manager start it again, or let another instance go on. A signal is
passed on to the command; one that comes while dibs stands by ends it.

The command's environment is that of dibs run; DIBS_FENCE grows with every leader:
have the resource refuse smaller ones.`

func newElect() *cobra.Command {
	r := newRunner("elect", "name")
	r.wait.wanted, r.patient = true, true
	cmd := r.command((*session).lead)
	cmd.Short = "Run a command while leader"
	cmd.Long = electLong + limits() + "\n\n" + exitCodes
	cmd.Example = `  dibs elect scheduler -- scheduler --config prod.yaml
  dibs show scheduler                              (who leads, and who stands by)`
	r.flags(
		cmd, "store", "ttl", "grace", "kill-after", "meta", "reason", "die-with-parent", "report", "events", "quiet", "verbose",
	)
	return cmd
}

// lead runs the command each time that it leads, until it ends by itself.
func (s *session) lead() error {
	mutex := s.client.Mutex(s.key)
	for try := 0; ; try++ {
		s.began, s.result.Outcome = time.Now(), ""
		lease, err := s.lock(mutex)
		if err != nil {
			return err
		}
		began := time.Now()
		if !s.quiet {
			say(s.stderr, "leading %s, fence %d", quote(s.key), lease.Fence())
		}
		err = s.hold(lease, func() error { return s.execute(lease) })
		code, text := verdict(err)
		if code != exitLost || s.result.Outcome == outcomeRan || s.asked {
			return err
		}
		say(s.stderr, "%s", text)
		if !s.quiet {
			say(s.stderr, "standing by to lead %s again", quote(s.key))
		}
		if time.Since(began) > s.ttl.Duration { // that one went well
			try = 0
		}
		if err := s.sleep(s.in, recess(try)); err != nil {
			return err
		}
	}
}

// recess is how long a leader that was lost stays away: longer from one time to
// the next, so that what is broken here doesn't keep others from leading.
func recess(try int) time.Duration {
	most := min(100*time.Millisecond<<min(try, 10), 10*time.Second)
	return most/2 + rand.N(most/2)
}
