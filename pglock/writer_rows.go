package pglock

import (
	"encoding/json"
	"fmt"

	"github.com/dibslock/dibs/driver"
)

// step is a row of what the statement write is told: a name, and the claim in its
// own row.
type stepRow struct {
	Name     string `json:"name"`
	Version  int64  `json:"version"`
	Last     int64  `json:"last"`
	Readers  int64  `json:"readers"`
	TookOver bool   `json:"took_over"`
	Mark     int64  `json:"mark"`
	Others   int    `json:"others"`
	Plain    bool   `json:"plain"`
	*row
}

// lone is the claim that is to be in n's own row: the one that is there, as long as
// it lives, or one that is granted now. nil: none.
func (n *name) lone() *row {
	if r := n.find(func(r *row) bool { return r.lone }); r != nil {
		return r
	}
	return n.find(func(r *row) bool { return r.taking() && (r.fresh || r.changed && r.is(driver.Handed)) })
}

// plain tells whether all rows but lone are places of claims that replace none.
func (n *name) plain(lone *row) bool {
	return n.find(func(r *row) bool { return r != lone && (r.taking() || len(r.Origin) > 0) }) == nil
}

// step is what is written of n itself.
func (n *name) step(lone *row) stepRow {
	s := stepRow{n.key, n.version, n.last, n.readers, n.tookOver, n.mark, len(n.rows), n.plain(lone), lone}
	if lone == nil {
		s.row = &row{}
	} else {
		s.Others--
	}
	return s
}

// dropRow is a row to be removed: with a fence, only if nobody relies on it.
type dropRow struct {
	Name  string `json:"name"`
	Seq   int64  `json:"seq"`
	Fence int64  `json:"fence"`
	Lone  bool   `json:"lone"`
}

type newsRow struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// onlyWaits tells whether n's step is no more than that p takes a place, or waits on.
func (n *name) onlyWaits(p *row) bool {
	return p.is(driver.Waiting) && n.find(func(r *row) bool { return r != p && (r.fresh || r.changed) }) == nil
}

// encode is v as JSON; v is made of what JSON can say.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("pglock: %v", err))
	}
	return string(b)
}
