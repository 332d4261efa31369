package pglock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/dibslock/dibs/driver"
)

// What is told on the channel.
const (
	newsHanded  = 'h' // a place was handed the name
	newsAsk     = 'a' // a place is to ask again
	newsEnded   = 'e' // a claim ended by expiry
	newsRevoked = 'r' // a claim was taken away
)

// news is for one waiter or holder: what happened to its row.
type news struct {
	kind  byte
	id    []byte
	place int64
	grant driver.Grant
	until int64 // when a hand-over lapses; 0: its grant is not to be told
}

// A digest stands for a claim's ID where others can see it: the ID itself proves
// the claim.
type digest [16]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:16])
}

// encode is x as it is told to other clients; the statement handOn does the same.
func (x news) encode() string {
	d := digestOf(string(x.id))
	took := 0
	if x.grant.TookOver {
		took = 1
	}
	return fmt.Sprintf("%c %s %d %d %d %d %d %d", x.kind, hex.EncodeToString(d[:]), x.place, x.grant.Token, x.grant.Fence, micros(x.grant.TTL), x.until, took)
}

// decodeNews reads what another client told.
func decodeNews(text string) (x news, d digest, err error) {
	var id string
	var ttl int64
	var kind rune
	var took int
	if _, err := fmt.Sscanf(text, "%c %s %d %d %d %d %d %d", &kind, &id, &x.place, &x.grant.Token, &x.grant.Fence, &ttl, &x.until, &took); err != nil {
		return news{}, d, err
	}
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) != len(d) {
		return news{}, d, errors.New("not a digest")
	}
	x.kind, x.grant.TTL, x.grant.TookOver = byte(kind), span(ttl), took != 0
	return x, digest(raw), nil
}

// tellLocal brings the news of n, whose step is written, to this client's own
// callers.
func (t *Table) tellLocal(n *name) {
	for _, x := range n.news {
		t.subs.tell(digestOf(string(x.id)), x)
	}
}
