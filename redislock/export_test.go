package redislock

// Hooks for tests.

// Reply is the error for an error reply.
func Reply(text string) error { return reply("name", text) }

// Slot is the hash slot of a key.
func Slot(key string) int { return slot(key) }

// Keys are the keys of a name: of its state, and in the plain layout of the lock.
func Keys(name string, plain bool) []string {
	k := newKeys("dibs", plain)
	if plain {
		return []string{k.name(name), name}
	}
	return []string{k.name(name)}
}

// NameOf is the name whose state is at key.
func NameOf(key string, plain bool) (string, bool) { return newKeys("dibs", plain).nameOf(key) }

// MaxUnder is how many calls may be under way on a connection.
const MaxUnder = maxUnder
