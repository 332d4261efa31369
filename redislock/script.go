package redislock

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strings"
)

// A script is one atomic step on the server.
type script struct{ text, sha string }

//go:embed lua/lib.lua
var lib string

// newScript makes a script of a file's text, with the rules of a name in place
// of its line "--#lib". Redis wants the line with the flags to stay the first.
func newScript(text string) *script {
	text = strings.Replace(text, "--#lib\n", lib, 1)
	sum := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(sum[:])}
}

var (
	//go:embed lua/acquire.lua
	acquireText string
	//go:embed lua/acquire_all.lua
	acquireAllText string
	//go:embed lua/renew.lua
	renewText string
	//go:embed lua/release.lua
	releaseText string
	//go:embed lua/revoke.lua
	revokeText string
	//go:embed lua/list.lua
	listText string
	//go:embed lua/record_get.lua
	recordGetText string
	//go:embed lua/record_put.lua
	recordPutText string
	//go:embed lua/record_delete.lua
	recordDeleteText string
)

var (
	acquireScript      = newScript(acquireText)
	acquireAllScript   = newScript(acquireAllText)
	renewScript        = newScript(renewText)
	releaseScript      = newScript(releaseText)
	revokeScript       = newScript(revokeText)
	listScript         = newScript(listText)
	recordGetScript    = newScript(recordGetText)
	recordPutScript    = newScript(recordPutText)
	recordDeleteScript = newScript(recordDeleteText)
)
