package pglock

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// stranger is the ID of a claim of another program. No digest is equal to it.
const stranger = "stranger"

// shedBy is how many characters of locked_by are used.
const shedBy = 255

// A shedRow is a row of ShedLock's table. Moments are microseconds.
//
// Everybody obeys lock_until: the name is closed until then, for Keep and Delay
// too. The rest of a claim of ours, its own end among it, is in locked_by:
//
//	dibs held DIGEST NUMBERS FROM NOTE
//	dibs free                           (given back; "free died": by an operator)
//
// Whoever changes lock_until by hand has the last word.
type shedRow struct {
	key   string
	was   *string // the version that was read; nil: there is no row
	until int64
	at    int64
	by    string
	now   int64
}

// veiled is c with digests in the place of IDs: everybody can read the table.
func veiled(c driver.Claim) driver.Claim {
	for _, id := range []*string{&c.ID, &c.From} {
		if *id != "" {
			d := digestOf(*id)
			*id = hex.EncodeToString(d[:])
		}
	}
	return c
}

// name is the state of the name, for the rules that all stores of this package
// share. unit is the columns' precision.
func (x *shedRow) name(unit int64) *name {
	// The next number to be drawn is the moment of the grant, and larger than
	// the last one.
	n := &name{key: x.key, now: x.now, last: ceil(max(x.now, x.at+1), unit) - 1}
	r, died := parseBy(x.by)
	closed := x.until > x.now
	switch {
	case x.was == nil:
	case r == nil && !closed:
		n.tookOver = died
	case r == nil || closed && x.until > ceil(r.gone(), unit): // not ours, or kept closed by hand
		n.rows = []*row{{
			Name: x.key, ID: []byte(stranger), State: uint8(driver.Held), Token: x.at, Seq: x.at, Units: 1, Capacity: 1,
			Since: x.at, Heard: x.at, Until: x.until, TTL: max(x.until-x.at, 0), Note: x.by,
		}}
	case closed || x.until >= r.gone():
		r.Name, r.Token, r.Fence, r.Seq = x.key, x.at, x.at, x.at
		r.Until = min(r.Until, x.until)
		n.rows = []*row{r}
		n.tookOver = r.Died || r.is(driver.Draining)
	default: // opened by hand: lost, and no death
	}
	return n
}

// outcome makes x what a step has made of n.
func (x *shedRow) outcome(n *name, unit int64) {
	for _, r := range n.rows {
		if r.taking() {
			x.until, x.at, x.by = ceil(r.gone(), unit), r.Token, formatBy(r)
			return
		}
	}
	x.until, x.by = n.now-n.now%unit, "dibs free"
	if n.tookOver {
		x.by += " died"
	}
}

// ceil is t rounded up to a multiple of unit.
func ceil(t, unit int64) int64 { return (t + unit - 1) / unit * unit }

// formatBy is what locked_by says of a claim.
func formatBy(r *row) string {
	var b strings.Builder
	b.WriteString("dibs " + r.state().String() + " " + string(r.ID) + " ")
	for i, v := range []int64{r.Until, r.TTL, r.Keep, r.Heard, r.Delay, r.Since, int64(r.Units), flag(r.Died), flag(r.TookOver)} {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strconv.FormatInt(v, 36))
	}
	from := string(r.Origin)
	if from == "" {
		from = "-"
	}
	b.WriteString(" " + from + " " + r.Note)
	runes := []rune(b.String())
	return string(runes[:min(len(runes), shedBy)])
}

// parseBy reads what formatBy wrote; nil: it is no claim of ours. died tells that
// the name was freed by an end that was no release.
func parseBy(by string) (r *row, died bool) {
	word := strings.SplitN(by, " ", 6)
	if word[0] != "dibs" || len(word) != 6 {
		return nil, by == "dibs free died"
	}
	r = &row{ID: []byte(word[2]), Note: word[5]}
	for s := driver.Held; s < driver.Waiting; s++ {
		if s.String() == word[1] {
			r.State = uint8(s)
		}
	}
	var units, dead, took int64
	numbers := []*int64{&r.Until, &r.TTL, &r.Keep, &r.Heard, &r.Delay, &r.Since, &units, &dead, &took}
	text := strings.Split(word[3], ".")
	if r.State == 0 || len(text) != len(numbers) {
		return nil, false
	}
	for i, to := range numbers {
		v, err := strconv.ParseInt(text[i], 36, 64)
		if err != nil {
			return nil, false
		}
		*to = v
	}
	r.Units, r.Capacity, r.Died, r.TookOver = int(units), int(units), dead != 0, took != 0
	if word[4] != "-" {
		r.Origin = []byte(word[4])
	}
	return r, false
}

func flag(b bool) int64 { return int64(boolIndex(b)) }
