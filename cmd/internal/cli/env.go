package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// ours are the variables that the command gets. An inner run's values win over
// an outer run's: what an outer run set is taken away first.
var ours = []string{"DIBS_KEY", keysVar, "DIBS_FENCE", "DIBS_RUN_ID", "DIBS_MODE", "DIBS_TTL", "DIBS_STORE", "DIBS_AGAIN"}

// childEnv is the environment of a command that holds something: this process's own
// and ours.
func (r *runner) childEnv(environ []string, fences map[string]uint64) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(ours, name)
	})
	var keys []heldKey
	for _, name := range r.names {
		keys = append(keys, heldKey{name, identity(r.place.url), r.pid, fences[name]})
	}
	key := r.key
	if len(r.names) > 1 {
		key = r.names[0]
	}
	env = append(
		env,
		"DIBS_KEY="+key,
		keysVar+"="+keysWith(r.outer, keys...),
		"DIBS_FENCE="+strconv.FormatUint(fences[r.names[0]], 10),
		"DIBS_RUN_ID="+r.runID,
		"DIBS_MODE="+r.mode(),
		"DIBS_TTL="+r.ttl.Duration.String(),
		"DIBS_STORE="+driver.Redact(r.place.url),
	)
	if r.again {
		env = append(env, "DIBS_AGAIN=1")
	}
	return env
}
