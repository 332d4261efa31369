package redislock

import (
	"strings"

	"github.com/dibslock/dibs/driver"
)

// keys makes the keys of one namespace. Names are escaped so that each has one
// hash tag, the whole of it: all keys of a name are in one slot, and no two
// names meet.
//
// In the plain layout the lock's own key is its name, which sets the slot, and
// the state beside it has a tag that hashes to the same.
type keys struct {
	prefix, mark, journal string
	plain                 bool
}

func newKeys(prefix string, plain bool) keys {
	return keys{prefix, prefix + ":mark", prefix + ":journal", plain}
}

// own tells whether name, which in the plain layout is a key, would be one of the
// prefix's own.
func (k keys) own(name string) bool { return k.plain && strings.HasPrefix(name, k.prefix+":") }

// check is driver.Claim's Check, and refuses a name that is a key of the store.
func (s *Store) check(c driver.Claim) (driver.Claim, error) {
	c, err := c.Check(s.Facts())
	if err == nil && s.keys.own(c.Name) {
		err = ownKey(c.Name, s.keys.prefix)
	}
	return c, err
}

func ownKey(name, prefix string) error {
	return driver.Rejectedf(name, "redis: in the plain layout the name is a key, and those that begin with %q are the store's own: name it otherwise, or open the store with another prefix", prefix+":")
}

// name is the key of a name's state.
func (k keys) name(name string) string { return string(k.append(nil, name)) }

// append appends the key of a name's state to b.
func (k keys) append(b []byte, name string) []byte {
	b = append(b, k.prefix...)
	if k.plain {
		b = append(append(b, ":plain:{"...), tag(slot(name))...)
		return append(append(b, "}:"...), name...)
	}
	b = append(append(b, ":{"...), escape(name)...)
	return append(b, '}')
}

// record is the key of a record.
func (k keys) record(key string) string { return k.prefix + ":record:{" + escape(key) + "}" }

// escape spares the two bytes that would end a hash tag early, or make two names
// one. What it returns is never empty, since no name is.
func escape(name string) string {
	if !strings.ContainsAny(name, "%}") {
		return name
	}
	return escaper.Replace(name)
}

var (
	escaper   = strings.NewReplacer("%", "%25", "}", "%7D")
	unescaper = strings.NewReplacer("%7D", "}", "%25", "%")
)

// names is the pattern of the keys of names that begin with prefix.
func (k keys) names(prefix string) string {
	if k.plain {
		return glob(k.prefix+":plain:{") + "*}:" + glob(prefix) + "*"
	}
	return glob(k.prefix+":{"+escape(prefix)) + "*}"
}

// records is the pattern of the keys of records that begin with prefix.
func (k keys) records(prefix string) string { return glob(k.prefix+":record:{"+escape(prefix)) + "*}" }

// nameOf is the name whose state is at key; false if key is no such key.
func (k keys) nameOf(key string) (string, bool) {
	if k.plain {
		key, ok := strings.CutPrefix(key, k.prefix+":plain:{")
		_, name, found := strings.Cut(key, "}:")
		return name, ok && found
	}
	return within(key, k.prefix+":{")
}

func (k keys) recordOf(key string) (string, bool) { return within(key, k.prefix+":record:{") }

func within(key, open string) (string, bool) {
	key, ok := strings.CutPrefix(key, open)
	if !ok || !strings.HasSuffix(key, "}") {
		return "", false
	}
	return unescaper.Replace(key[:len(key)-1]), true
}

// glob escapes what SCAN's patterns take for more than itself.
func glob(s string) string { return globber.Replace(s) }

var globber = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "^", `\^`)
