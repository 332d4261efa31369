package pglock

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

// A renewal is the proof that a claim with a token asks for.
type renewal struct {
	c     driver.Claim
	proof *driver.Proof
}

// renew proves in one statement what it can of the operations open of b, and returns
// those that are left, which take the long way: it tells why.
//
// Its commit waits for the disk as every other does: a holder goes on trusting a
// renewal when the server has lost it with its power, and comes back.
func (w *writer) renew(b *batch, open []int) []int {
	var names []string
	var ids [][]byte
	var tokens, ttls []int64
	at := make(map[string]int)
	for _, i := range open {
		if len(b.ops[i]) != 1 {
			continue
		}
		o := b.ops[i][0]
		if o.renew == nil || !w.desk.wants(o) {
			continue
		}
		c := o.renew.c
		at[c.Name] = i
		names, ids = append(names, c.Name), append(ids, []byte(c.ID))
		tokens, ttls = append(tokens, int64(c.Token)), append(ttls, micros(c.TTL))
	}
	if len(names) == 0 || w.connect(b.ctx) != nil {
		return open
	}
	ctx, cancel := context.WithTimeout(b.ctx, callWait)
	defer cancel()
	done := make(map[int]bool)
	err := w.session.run(ctx, w.s.sql.named("renew"), []any{names, ids, tokens, ttls}, func(rows pgx.Rows) error {
		var name string
		err := rows.Scan(&name)
		done[at[name]] = true
		return err
	})
	if err != nil {
		if !untouched(err) {
			_ = w.judge(err)
		}
		return open // a proof is as good the second time
	}
	var rest []int
	for _, i := range open {
		if !done[i] {
			rest = append(rest, i)
			continue
		}
		o := b.ops[i][0]
		*o.renew.proof = driver.Proof{TTL: o.renew.c.TTL}
		w.desk.answer(b, i, nil)
	}
	return rest
}
