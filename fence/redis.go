package fence

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Eval runs a script by EVAL, or by EVALSHA and what it takes to load it, in the
// client that the program has. With rueidis:
//
//	func(ctx context.Context, script string, keys, args []string) (any, error) {
//		return rueidis.NewLuaScript(script).Exec(ctx, client, keys, args).ToAny()
//	}
//
// and with go-redis:
//
//	func(ctx context.Context, script string, keys, args []string) (any, error) {
//		return redis.NewScript(script).Run(ctx, client, keys, args).Result()
//	}
//
// An error that the script replied with must come back with the server's text.
type Eval func(ctx context.Context, script string, keys, args []string) (any, error)

// Redis guards what is in Redis: the write happens inside the script that compares
// the tokens. It is safe for concurrent use if Eval is.
type Redis struct {
	// Eval runs scripts; it must be set.
	Eval Eval
	// Key names the key that holds the newest token of a lease's name; nil: RedisKey.
	// In a cluster it must lie in the same hash slot as all that scripts touch.
	Key func(name string) string
	// Keep is how long after the last contact a token is remembered: longer than
	// any holder can be frozen and still wake up, or its write is let through. 0: for
	// ever. Rounded up to milliseconds.
	Keep time.Duration
}

// RedisKey is dibs:fence:{name}. Keys with the same text in braces lie in the same
// hash slot: invoice:{name}:total. Braces and percent signs in name are written
// as in a URL (%7B).
func RedisKey(name string) string { return "dibs:fence:{" + escapeTag.Replace(name) + "}" }

var escapeTag = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")

// Run runs a script with its keys and arguments unless a newer token than the
// lease's was seen, which is a *StaleError: then nothing was run. The script sees
// its own KEYS and ARGV alone. What it replies, errors included, comes back as Eval
// gives it. Guard scripts that read as well.
func (r Redis) Run(ctx context.Context, lease Fenced, script string, keys []string, args ...string) (any, error) {
	name, token, err := offered(lease)
	if err != nil {
		return nil, err
	}
	return r.run(ctx, name, token, script, keys, args)
}

// Set is SET key value, guarded.
func (r Redis) Set(ctx context.Context, lease Fenced, key, value string) error {
	_, err := r.Run(ctx, lease, "return redis.call('SET', KEYS[1], ARGV[1])", []string{key}, value)
	return err
}

// HSet is HSET key field value ..., guarded.
func (r Redis) HSet(ctx context.Context, lease Fenced, key string, pairs ...string) error {
	_, err := r.Run(ctx, lease, "return redis.call('HSET', KEYS[1], unpack(ARGV))", []string{key}, pairs...)
	return err
}

// Raise is a [Store]'s.
func (r Redis) Raise(ctx context.Context, name string, token uint64) (newest uint64, err error) {
	_, err = r.run(ctx, name, token, "return 1", nil, nil)
	if stale, ok := errors.AsType[*StaleError](err); ok {
		return stale.Newest, nil
	}
	return token, err
}

//go:embed guard.lua
var guardLua string

// guardLine is the guard in one line: then the line numbers in a script's errors
// are the script's own.
var guardLine = inOneLine(guardLua)

func inOneLine(lua string) string {
	var words []string
	for line := range strings.Lines(lua) {
		code, _, _ := strings.Cut(line, "--")
		words = append(words, strings.Fields(code)...)
	}
	return strings.Join(words, " ") + " "
}

// GuardScript returns the script that Run runs: script with the guard before it,
// for those who load scripts themselves. guard.lua says what its keys and arguments
// are.
func GuardScript(script string) string {
	first := "" // #!lua flags=... must stay first
	if strings.HasPrefix(script, "#!") {
		shebang, rest, _ := strings.Cut(script, "\n")
		first, script = shebang+"\n", rest
	}
	return first + guardLine + script
}

func (r Redis) run(ctx context.Context, name string, token uint64, script string, keys, args []string) (any, error) {
	if r.Eval == nil {
		return nil, errors.New("fence: Redis needs an Eval")
	}
	at := RedisKey
	if r.Key != nil {
		at = r.Key
	}
	keep := (r.Keep + time.Millisecond - 1) / time.Millisecond
	keys = append([]string{at(name)}, keys...)
	args = append([]string{strconv.FormatUint(token, 10), strconv.FormatInt(int64(keep), 10)}, args...)
	reply, err := r.Eval(ctx, GuardScript(script), keys, args)
	if err != nil {
		err = understood(err, name, token)
	}
	return reply, err
}

// understood tells the guard's refusals from other errors, which it returns as
// they are.
func understood(err error, name string, token uint64) error {
	if _, digits, ok := strings.Cut(err.Error(), "DIBS_STALE "); ok {
		newest, bad := strconv.ParseUint(firstWord(digits), 10, 64)
		if bad == nil && newest > token {
			return &StaleError{Name: name, Offered: token, Newest: newest}
		}
	}
	if _, key, ok := strings.Cut(err.Error(), "DIBS_NOTOKEN "); ok {
		return fmt.Errorf("fence of %q: the key %s holds something that is no token: choose another by Redis.Key, or delete it: %w", name, firstWord(key), err)
	}
	return err
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return word
}
