package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// show says what would be broken.
func (u *unlocker) show(targets []unlocked) {
	for _, t := range targets {
		k := freeKey(t.Key)
		k.Holders = []claimStatus{t.Claim}
		say(u.err, "%s\n%s", present(k), u.effect(t))
	}
}

// effect says what taking t away means.
func (u *unlocker) effect(t unlocked) string {
	left := short(t.Claim.holder.Left)
	switch {
	case u.now:
		return "  --now frees it at once: another can hold it while this holder, if it lives, is still at work"
	case t.Claim.holder.State == driver.Revoked:
		return "  it was revoked already; it stays closed until its holder lets go, for at most " + left
	}
	return "  its holder is told to stop; the key stays closed until it lets go, for at most " + left
}

func (u *unlocker) canAsk() bool { return isTerminal(os.Stdin) && isTerminal(os.Stderr) }

func (u *unlocker) ask(n int) error {
	if !u.canAsk() {
		return u.unconfirmed("there is no terminal to ask on")
	}
	what := "it"
	if n > 1 {
		what = fmt.Sprintf("all %d", n)
	}
	fmt.Fprintf(u.err, "Take %s away? [y/N] ", what)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return u.unconfirmed("not confirmed")
	}
	return nil
}

func (u *unlocker) unconfirmed(why string) error {
	return usagef("%s; nothing was done\nuse --yes to do it without being asked, or --dry-run to see what would be done", why)
}
