package pglock

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// A key is what PostgreSQL's advisory locks are taken on: a bigint, or two int4,
// which never meet. Keys belong to a database.
type key struct {
	k   int64 // of two: the first in the high half, the second in the low half
	two bool
}

// How a name becomes a key.
const (
	hashSHA  = "sha256"   // 64 bits
	hashText = "hashtext" // what pg_advisory_lock(hashtext('name')) takes: 32 bits
	keyRaw   = "raw"      // the name is a bigint, or two int4: "42" or "4,2"
)

// shaKey is the key of name in a namespace.
func shaKey(namespace, name string) key {
	// The zero keeps ("a", "bc") and ("ab", "c") apart: no name has one.
	sum := sha256.Sum256([]byte("dibs\x00" + namespace + "\x00" + name))
	return key{k: int64(binary.BigEndian.Uint64(sum[:]))}
}

// rawKey is the key that name spells out.
func rawKey(name string) (key, error) {
	first, second, two := strings.Cut(name, ",")
	bad := func() (key, error) {
		return key{}, driver.Rejectedf(name, "with key=raw a name is a bigint, or two int4 with a comma between, such as 42 or 4,2")
	}
	if !two {
		k, err := strconv.ParseInt(first, 10, 64)
		if err != nil || strconv.FormatInt(k, 10) != first { // one spelling a key
			return bad()
		}
		return key{k: k}, nil
	}
	a, err1 := strconv.ParseInt(first, 10, 32)
	b, err2 := strconv.ParseInt(second, 10, 32)
	if err1 != nil || err2 != nil || strconv.FormatInt(a, 10) != first || strconv.FormatInt(b, 10) != second {
		return bad()
	}
	return key{k: a<<32 | b&0xffffffff, two: true}, nil
}

// told is what those who wait for k are told, as the statement unlock does.
func (k key) told() string {
	if k.two {
		return "p" + strconv.FormatInt(k.k, 10)
	}
	return "k" + strconv.FormatInt(k.k, 10)
}

// parseKey reads what the statement unlock tells.
func parseKey(text string) (key, bool) {
	if len(text) < 2 || text[0] != 'k' && text[0] != 'p' {
		return key{}, false
	}
	k, err := strconv.ParseInt(text[1:], 10, 64)
	return key{k: k, two: text[0] == 'p'}, err == nil
}
