package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dibslock/dibs/cmd/internal/child"
)

// use is the synopsis: run KEY [flags] -- CMD [ARG...].
func (r *runner) use() string {
	return r.verb + " " + strings.ToUpper(strings.Join(r.operands, " ")) + " [flags] -- CMD [ARG...]"
}

// take reads the arguments: dash of them stood before the --, or it is -1.
func (r *runner) take(args []string, dash int) error {
	usage := "usage: dibs " + r.use()
	least, most := len(r.operands), len(r.operands)
	if r.more != nil {
		least = 0
	}
	switch {
	case dash < 0 && len(args) < least:
		return usagef("the %s and the command are missing\n%s", r.operands[len(args)], usage)
	case dash < 0 && len(args) == least:
		return usagef("the command for %s is missing; nothing was run\n%s", quote(slices.Concat(args, r.more)[0]), usage)
	case dash < 0:
		return usagef("-- is missing before the command; nothing was run\ndid you mean: dibs %s %s", r.verb, r.line(args[:least], args[least:]))
	case dash < least:
		return usagef("the %s is missing before --; nothing was run\n%s", r.operands[dash], usage)
	case dash > most:
		return usagef("unexpected %s before --; nothing was run\n%s", quote(args[most]), r.surplus(args[:dash]))
	case dash == len(args):
		return usagef("the command is missing after --; nothing was run\n%s", usage)
	}
	r.argv = args[dash:]
	r.names = slices.Concat(args[:min(dash, 1)], r.more)
	r.key = strings.Join(r.names, " + ")
	for i, name := range r.names {
		if err := checkKey(name); err != nil {
			return err
		}
		if slices.Contains(r.names[:i], name) {
			return usagef("the key %s is given twice", quote(name))
		}
	}
	if r.prepare != nil {
		if err := r.prepare(args[:dash]); err != nil {
			return err
		}
	}
	return r.check()
}

// line is a command line with its keys.
func (r *runner) line(operands, argv []string) string {
	for _, key := range r.more {
		operands = append([]string{"-k", key}, operands...)
	}
	return commandLine(slices.Concat(operands, []string{"--"}, argv))
}

// surplus guesses what was meant by too many arguments before the --.
func (r *runner) surplus(args []string) string {
	if r.wait.wanted && !r.wait.given {
		for _, arg := range args {
			if _, err := parseDuration(arg); err == nil {
				return fmt.Sprintf("did you mean --wait=%s?", arg)
			}
		}
	}
	if r.verb == "run" {
		return fmt.Sprintf("the command follows --: dibs run %s; several keys are given with -k", r.line(args[:1], args[1:]))
	}
	return "usage: dibs " + r.use()
}

// check refuses what can't be meant, before anything is done.
func (r *runner) check() error {
	r.caption.argv, r.caption.reason = r.argv, r.reason.value
	if err := r.caption.check(); err != nil {
		return err
	}
	if !r.grace.given {
		r.grace.Duration = min(5*time.Second, r.ttl.Duration/4)
	}
	switch {
	case r.shared && r.slots.given:
		return usagef("--shared and --slots exclude each other: a shared key has no limit")
	case !slices.Contains([]string{"kill", "warn"}, r.onLost.value):
		return usagef("--on-lost %s: want kill or warn", quote(r.onLost.value))
	case !slices.Contains([]string{"fail", "skip"}, r.ifStoreDown.value):
		return usagef("--if-store-down %s: want fail or skip", quote(r.ifStoreDown.value))
	case r.report.given && r.report.value == "", r.eventsTo.given && r.eventsTo.value == "":
		return usagef("--report and --events need the name of a file")
	case r.dieWithParent && !knowsParent:
		return usagef("--die-with-parent: this system doesn't tell of the end of a parent")
	case r.grace.Duration >= r.ttl.Duration/2:
		return usagef("--grace %s: it must be less than half of --ttl %s, or the command could not be stopped before the lock ends", short(r.grace.Duration), short(r.ttl.Duration))
	case r.quiet && r.verbose:
		return usagef("--quiet and --verbose exclude each other")
	}
	path, err := child.Look(r.argv[0])
	switch {
	case errors.Is(err, child.ErrNotFound):
		return failf(exitNotFound, "%v; nothing was locked", err)
	case err != nil:
		return failf(exitNotExecutable, "%v; nothing was locked", err)
	}
	r.path, r.pid = path, os.Getpid()
	return nil
}
