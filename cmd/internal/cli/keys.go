package cli

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// The variable DIBS_KEYS has a line for each key that the outer runs hold, the
// outermost first: the key, the identity of its store, the process id of the dibs
// that holds it, and its fence, separated by tabs (which no key can have).
const keysVar = "DIBS_KEYS"

type heldKey struct {
	key   string
	store string // "": any
	pid   int    // 0: not known
	fence uint64 // 0: none, or not known
}

func (k heldKey) String() string {
	return k.key + "\t" + k.store + "\t" + strconv.Itoa(k.pid) + "\t" + strconv.FormatUint(k.fence, 10)
}

// keysWith is DIBS_KEYS for a command that runs under keys too, within outer.
func keysWith(outer []heldKey, keys ...heldKey) string {
	var lines []string
	for _, k := range slices.Concat(outer, keys) {
		lines = append(lines, k.String())
	}
	return strings.Join(lines, "\n")
}

// outerKeys reads DIBS_KEYS.
func outerKeys(text string) []heldKey {
	var keys []heldKey
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			continue
		}
		fields := append(strings.Split(line, "\t"), "", "", "")
		pid, _ := strconv.Atoi(fields[2])
		fence, _ := strconv.ParseUint(fields[3], 10, 64)
		keys = append(keys, heldKey{fields[0], fields[1], pid, fence})
	}
	return keys
}

// nested refuses a key that an outer run holds: the inner one would wait for the
// outer one, which waits for its command. That goes for shared and counted keys
// too: a writer that came in between, or other holders, would complete the ring.
func nested(keys []heldKey, key, store string) error {
	for _, k := range keys {
		if k.key != key || k.store != "" && k.store != store || k.pid == os.Getpid() {
			continue
		}
		if k.pid > 0 && !alive(k.pid) {
			continue // that run is over: this process left its tree
		}
		return usagef("%s would deadlock: it is held already by the outer dibs run (pid %d) whose command this is; nothing was run\nuse another key, or run the command without dibs", quote(key), k.pid)
	}
	return nil
}
