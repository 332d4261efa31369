package cli

import (
	"slices"
	"strconv"
	"strings"
)

// ours are the variables that the command gets. An inner run's values win over
// an outer run's: what an outer run set is taken away first.
var ours = []string{"DIBS_KEY", keysVar, "DIBS_FENCE", "DIBS_RUN_ID", "DIBS_MODE", "DIBS_TTL", "DIBS_STORE"}

// childEnv is the environment of the command: this process's own and ours.
func (r *runner) childEnv(environ []string, fence uint64) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(ours, name)
	})
	var keys []string
	for _, k := range append(r.outer, heldKey{key: r.key, store: identity(r.place.url), pid: r.pid}) {
		keys = append(keys, k.String())
	}
	return append(env,
		"DIBS_KEY="+r.key,
		keysVar+"="+strings.Join(keys, "\n"),
		"DIBS_FENCE="+strconv.FormatUint(fence, 10),
		"DIBS_RUN_ID="+r.runID,
		"DIBS_MODE="+r.mode(),
		"DIBS_TTL="+r.ttl.Duration.String(),
		"DIBS_STORE="+redact(r.place.url),
	)
}
