package cli

import (
	"fmt"
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
		if k.of(key) && (k.store == "" || k.store == store) {
			return k.deadlock()
		}
	}
	return nil
}

// of tells whether k is key in some store, held by an outer run that is not over: a
// process may have left its tree.
func (k heldKey) of(key string) bool {
	return k.key == key && k.pid != os.Getpid() && (k.pid <= 0 || alive(k.pid))
}

func (k heldKey) deadlock() error {
	return usagef("%s would deadlock: it is held already by the outer dibs run (pid %d) whose command this is; nothing was run\nuse another key, or run the command without dibs", quote(k.key), k.pid)
}

// disguised tells whether key may be an outer run's by another spelling of its store.
func disguised(keys []heldKey, key string) bool {
	return slices.ContainsFunc(keys, func(k heldKey) bool { return k.of(key) && k.fence != 0 })
}

// nestedIn is nested for a store that is spelled in another way: what tells is the
// claim. A fence is a store's own, but not its process beside it: a run has one store.
func nestedIn(keys []heldKey, status keyStatus) error {
	for _, k := range keys {
		if k.fence == 0 || !k.of(status.Key) {
			continue
		}
		by := fmt.Sprintf("@%s (pid %d)", hostName(), k.pid)
		for _, c := range status.Holders {
			m := who.FindStringSubmatch(c.Note)
			if c.holder.Fence == k.fence && m != nil && strings.HasSuffix(m[1], by) {
				return k.deadlock()
			}
		}
	}
	return nil
}
