package redislock

import (
	_ "embed"
	"strings"
)

var (
	//go:embed lua/redlock/lib.lua
	quorumLib string
	//go:embed lua/redlock/ask.lua
	askText string
	//go:embed lua/redlock/settle.lua
	settleText string
	//go:embed lua/redlock/renew.lua
	proveText string
	//go:embed lua/redlock/release.lua
	giveText string
	//go:embed lua/redlock/list.lua
	lookText string
	//go:embed lua/redlock/revoke.lua
	takeText string
	//go:embed lua/redlock/init.lua
	initText string
)

// What a node of a quorum runs.
var (
	askScript    = newQuorumScript(askText)
	settleScript = newQuorumScript(settleText)
	proveScript  = newQuorumScript(proveText)
	giveScript   = newQuorumScript(giveText)
	lookScript   = newQuorumScript(lookText)
	takeScript   = newQuorumScript(takeText)
	initScript   = newQuorumScript(initText)
)

// newQuorumScript makes a script of a file's text, with the rules of a node in
// place of its line "--#lib".
func newQuorumScript(text string) *script {
	return &script{make: func() string { return build(strings.Replace(text, "--#lib\n", quorumLib, 1)) }}
}
