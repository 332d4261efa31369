package redislock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// A class says what an error reply means for the call that got it (law 5).
type class uint8

const (
	unknown  class = iota // it may have been applied, or asking again may help
	rejected              // certainly not applied, and asking again does not help
	denied                // the same, for want of a right: an fs.ErrPermission too
)

// replies classes the error replies by their first word. What is not listed is
// unknown, and so is what is listed as such, with a hint: the server is not
// ready, or not the right one, or out of something, and may be ready in a
// moment.
var replies = map[string]struct {
	class class
	hint  string
}{
	"WRONGTYPE":   {rejected, "another program uses the key; give one of the two another prefix"},
	"NOMARK":      {rejected, "another program has written to it: give one of the two another prefix, or delete the key"}, // the scripts' own
	"PARTLY":      {unknown, "a step failed when it had changed something"},                                               // the scripts' own
	"FOREIGN":     {rejected, "delete the key if its owner is gone"},                                                      // plain.lua's own
	"NOPERM":      {denied, "the user may not do this; see the ACL in docs/stores/redis.md"},
	"NOAUTH":      {denied, "the server wants a password"},
	"WRONGPASS":   {denied, "the user or the password is wrong"},
	"CROSSSLOT":   {rejected, "this server is part of a cluster"},
	"MOVED":       {rejected, "this server is part of a cluster"},
	"UNKNOWN":     {rejected, ""},
	"NOSCRIPT":    {unknown, "the server forgot the script between two calls"},
	"ASK":         {unknown, "this server is part of a cluster whose slots are moving"},
	"TRYAGAIN":    {unknown, "this server is part of a cluster whose slots are moving"},
	"CLUSTERDOWN": {unknown, "the cluster does not work"},
	"READONLY":    {unknown, "the server is a replica: a failover may be under way"},
	"MASTERDOWN":  {unknown, "the server is a replica without a master"},
	"LOADING":     {unknown, "the server reads its data"},
	"BUSY":        {unknown, "the server runs somebody's slow script"},
	"OOM":         {unknown, "the server's memory is full (maxmemory); nothing was changed"},
	"MISCONF":     {unknown, "the server can't write its data to disk and refuses changes"},
	"NOREPLICAS":  {unknown, "too few replicas follow the server (min-replicas-to-write)"},
	"UNBLOCKED":   {unknown, ""},
	"EXECABORT":   {unknown, ""},
}

// mistakes are the replies without a word of their own that say for certain that
// the server is not what it was taken for: how they begin, and what to do.
var mistakes = []struct{ begins, hint string }{
	{"unknown command 'SENTINEL'", "the server is no sentinel: name the sentinels, at port 26379 as a rule, or use redis:// for one server"},
	{"unknown command", "Redis 7.0 or later, or Valkey, is needed, with this command"},
	{"Error compiling script", "Redis 7.0 or later, or Valkey, is needed"},
	{"DB index is out of range", "the server has fewer databases, as its setting databases says: name one that it has"},
	{"SELECT is not allowed in cluster mode", "the server is part of a cluster: use redis-cluster://"},
	{"This instance has cluster support disabled", "the server is in no cluster: use redis:// for one server"},
}

// deniedInside is how replies begin that say that a script may not do something for
// this user: of Redis 7.0, and of later ones.
var deniedInside = []string{"The user executing the script can't", "ACL failure in script"}

func isDeniedInside(text string) bool {
	text = strings.TrimPrefix(text, "ERR ")
	return slices.ContainsFunc(deniedInside, func(begins string) bool { return strings.HasPrefix(text, begins) })
}

// failed is what the caller of a call about name gets that got err.
func failed(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return over(ctx)
	}
	if errors.Is(err, rueidis.ErrClosing) {
		err = errGone // the connection was closed, and not the store
	}
	if why := distrust(err); why != "" {
		return driver.Rejectedf(name, "redis: %w%s", err, hint(why))
	}
	if errors.Is(err, errSilent) {
		return fmt.Errorf("redis: %w", err)
	}
	var e *rueidis.RedisError // also of the greeting of a new connection
	if !errors.As(err, &e) {
		return fmt.Errorf("redis: no answer: %w", err)
	}
	return reply(name, e.Error())
}

// distrust says what to do about a certificate that one side does not accept from the
// other; "": err is nothing of the kind. A handshake that breaks for another reason
// may succeed the next time.
func distrust(err error) string {
	var verify *tls.CertificateVerificationError
	if errors.As(err, &verify) {
		return "trust its authority by ca=FILE, or name it as its certificate does by servername="
	}
	var op *net.OpError // an alert has no type of its own
	if errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate") {
		return "the server wants our certificate, by cert=FILE and key=FILE, from an authority that it trusts"
	}
	return ""
}

// reply is the error for the server's error reply text.
func reply(name, text string) error {
	text = strings.TrimPrefix(text, "ERR ") // which says nothing, and which the client cuts off
	for _, m := range mistakes {
		if strings.HasPrefix(text, m.begins) {
			return driver.Rejectedf(name, "redis: %s%s", text, hint(m.hint))
		}
	}
	word, _, _ := strings.Cut(text, " ")
	if isDeniedInside(text) {
		word = "NOPERM"
	}
	switch kind := replies[word]; {
	case kind.class == denied:
		return &driver.RejectedError{Name: name, Why: "redis: " + text + hint(kind.hint), Err: fs.ErrPermission}
	case kind.class == rejected:
		return driver.Rejectedf(name, "redis: %s%s", text, hint(kind.hint))
	default:
		return fmt.Errorf("redis: %s%s", text, hint(kind.hint))
	}
}

func hint(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// over returns an unknown error that is the cause of ctx's end, if it has ended.
// A cause that would be a certain answer is told in words only.
func over(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if driver.Certain(cause) {
		return fmt.Errorf("redis: %w: %v", ctx.Err(), cause)
	}
	return fmt.Errorf("redis: %w", cause)
}
