package cli

import (
	"strings"

	"github.com/dibslock/dibs/driver"
)

// What some stores can't do, by the words that its failure begins with.
const (
	canList        = "list what is held"
	canRevoke      = "take away"
	canTellHistory = "read the journal"
	canShare       = "share a key"
	canCount       = "count holders"
	canKeep        = "keep a key closed"
	canRemember    = "remember what is done under"
	canLimit       = "limit"
)

// able has the stores that can do what others can't. Those with everything come
// first; what is shared with other programs has less.
var able = map[string][]string{
	canList:        {"sqlite://", "redis://", "postgres://", "pgadvisory://"},
	canRevoke:      {"sqlite://", "redis://", "postgres://", "pgadvisory://"},
	canTellHistory: {"sqlite://", "redis://" + notPlain, "postgres://" + notShedlock},
	canShare:       {"sqlite://", "redis://" + notPlain, "postgres://" + notShedlock, "pgadvisory://"},
	canCount:       {"sqlite://", "redis://" + notPlain, "postgres://" + notShedlock},
	canKeep:        {"sqlite://", "redis://", "postgres://"},
	canRemember:    {"sqlite://", "redis://", "postgres://" + notShedlock},
	canLimit:       {"sqlite://", "redis://", "postgres://" + notShedlock},
}

const (
	notPlain    = " (not with layout=plain)"
	notShedlock = " (not with layout=shedlock)"
)

// elsewhere says on a line of its own which stores are able to do something; "" if
// all are.
func elsewhere(ability string) string {
	stores := able[ability]
	if stores == nil {
		return ""
	}
	return "\nstores that can: " + strings.Join(stores, ", ")
}

// suits refuses a run that the store can't do, before anything is asked of it.
func (r *runner) suits(f driver.Facts) error {
	why, ability := "", ""
	switch mode := r.claimMode(); {
	case f.Modes&mode != 0:
	case mode == driver.Shared:
		why, ability = "--shared: a store of this kind knows "+f.Modes.String()+" locks only", canShare
	case mode == driver.Counted:
		why, ability = "--slots: a store of this kind knows "+f.Modes.String()+" locks only", canCount
	default:
		why = "a store of this kind knows " + f.Modes.String() + " locks only"
	}
	if reason := f.Waived(18); why == "" && r.atLeastFor.given && reason != "" {
		why, ability = "--at-least-for: "+reason, canKeep
	}
	if why == "" {
		return nil
	}
	return failf(exitRefused, "can't lock %s in %s: %s; nothing was run%s", quote(r.key), r.place, why, elsewhere(ability))
}
