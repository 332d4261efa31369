package fence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/fence"
	"github.com/dibslock/dibs/internal/servers"
)

// eval runs scripts on a server, each on a connection of its own.
func eval(r *servers.RedisServer) fence.Eval {
	return func(_ context.Context, script string, keys, args []string) (any, error) {
		cmd := []any{"EVAL", script, len(keys)}
		for _, k := range slices.Concat(keys, args) {
			cmd = append(cmd, k)
		}
		return r.Do(cmd...)
	}
}

// do runs a command and returns the reply as text.
func do(t *testing.T, r *servers.RedisServer, args ...any) string {
	t.Helper()
	reply, err := r.Do(args...)
	must(t, err)
	return fmt.Sprint(reply)
}

func TestRedisRefusesOlderTokens(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	guard := fence.Redis{Eval: eval(r)}
	const big = 1 << 53
	for _, step := range []struct{ offered, newest uint64 }{
		{9, 9},
		{10, 10},
		{9, 10},
		{10, 10},
		{1, 10},
		{99, 99},
		{100, 100},
		{big + 1, big + 1},
		{big, big + 1},
		{big + 2, big + 2},
		{fence.MaxToken, fence.MaxToken},
		{fence.MaxToken - 1, fence.MaxToken},
	} {
		before := do(t, r, "GET", "k{a}")
		err := guard.Set(t.Context(), fence.Of("a", step.offered), "k{a}", strconv.FormatUint(step.offered, 10))
		want := strconv.FormatUint(step.offered, 10)
		if step.offered < step.newest {
			stale(t, err, fence.StaleError{Name: "a", Offered: step.offered, Newest: step.newest})
			want = before
		} else {
			must(t, err)
		}
		if got := do(t, r, "GET", "k{a}"); got != want {
			t.Errorf("after %d: %s, want %s", step.offered, got, want)
		}
		if got := do(t, r, "GET", "dibs:fence:{a}"); got != strconv.FormatUint(step.newest, 10) {
			t.Errorf("after %d the newest is %s, want %d", step.offered, got, step.newest)
		}
	}
}

// TestRedisRunsTheScriptItself: its keys, arguments, replies and errors are its own.
func TestRedisRunsTheScriptItself(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	guard := fence.Redis{Eval: eval(r)}
	ctx, lease := t.Context(), fence.Of("a", 5)
	reply, err := guard.Run(ctx, lease, "return {#KEYS, #ARGV, KEYS[1], KEYS[2], ARGV[1], ARGV[2]}", []string{"x", "y"}, "1", "2")
	if got := fmt.Sprint(reply); err != nil || got != "[2 2 x y 1 2]" {
		t.Errorf("%s, %v", got, err)
	}
	if reply, err := guard.Run(ctx, lease, "return nil", nil); reply != nil || err != nil {
		t.Errorf("nil: %v, %v", reply, err)
	}
	many := make([]string, 9000)
	if reply, err := guard.Run(ctx, lease, "return #ARGV", nil, many...); err != nil || reply != int64(len(many)) {
		t.Errorf("many arguments: %v, %v", reply, err)
	}
	_, err = guard.Run(ctx, lease, "local a = 1\nlocal b = 2\nreturn redis.call('INCR', ARGV[1], 'x')", nil, "k")
	if err == nil || !strings.Contains(err.Error(), ":3:") && !strings.Contains(err.Error(), "line: 3") && !strings.Contains(err.Error(), "on @user_script:3") {
		t.Errorf("an error in the third line: %v", err)
	}
	_, err = guard.Run(ctx, lease, "return redis.error_reply('DIBS_STALE 4')", nil)
	if err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("an error of the script's own was taken for the guard's: %v", err)
	}
	if reply, err := guard.Run(ctx, lease, "#!lua flags=allow-cross-slot-keys\nreturn 7", nil); err != nil || reply != int64(7) {
		t.Errorf("with a first line for the server: %v, %v", reply, err)
	}
	must(t, guard.HSet(ctx, lease, "h", "f", "1", "g", "2"))
	if got := do(t, r, "HGET", "h", "g"); got != "2" {
		t.Errorf("HSet: %s", got)
	}
	stale(t, guard.HSet(ctx, fence.Of("a", 4), "h", "g", "3"), fence.StaleError{Name: "a", Offered: 4, Newest: 5})
	if got := do(t, r, "HGET", "h", "g"); got != "2" {
		t.Errorf("a stale HSet wrote %s", got)
	}
}

// TestRedisFirstContactRaises: a read of the newer holder is enough.
func TestRedisFirstContactRaises(t *testing.T) {
	t.Parallel()
	guard := fence.Redis{Eval: eval(servers.Redis(t))}
	ctx := t.Context()
	must(t, guard.Set(ctx, fence.Of("a", 7), "k", "1"))
	reply, err := guard.Run(ctx, fence.Of("a", 8), "return redis.call('GET', KEYS[1])", []string{"k"})
	if err != nil || reply != "1" {
		t.Fatalf("%v, %v", reply, err)
	}
	stale(t, guard.Set(ctx, fence.Of("a", 7), "k", "2"), fence.StaleError{Name: "a", Offered: 7, Newest: 8})
	must(t, guard.Set(ctx, fence.Of("b", 1), "k", "3"))
}

func TestRedisRefusesWhatCannotBeCompared(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	guard := fence.Redis{Eval: eval(r)}
	if err := guard.Set(t.Context(), fence.Of("a", 0), "k", "1"); !errors.Is(err, fence.ErrNoFence) {
		t.Errorf("fence 0: %v", err)
	}
	if err := (fence.Redis{}).Set(t.Context(), fence.Of("a", 1), "k", "1"); err == nil {
		t.Error("no Eval, and no error")
	}
	if got := do(t, r, "DBSIZE"); got != "0" {
		t.Errorf("%s keys, want none", got)
	}
	do(t, r, "SET", "dibs:fence:{a}", "ten")
	if err := guard.Set(t.Context(), fence.Of("a", 1), "k", "1"); err == nil || !strings.Contains(err.Error(), "dibs:fence:{a}") {
		t.Errorf("something else at the key: %v", err)
	}
	do(t, r, "DEL", "dibs:fence:{a}")
	do(t, r, "LPUSH", "dibs:fence:{a}", "1")
	if err := guard.Set(t.Context(), fence.Of("a", 1), "k", "1"); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("a list at the key: %v", err)
	}
	if got := do(t, r, "EXISTS", "k"); got != "0" {
		t.Error("something was written")
	}
}

func TestRedisKeysAreInOneSlot(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"orders/42": "dibs:fence:{orders/42}",
		"}":         "dibs:fence:{%7D}",
		"a{b}c":     "dibs:fence:{a%7Bb%7Dc}",
		"%7D":       "dibs:fence:{%257D}",
	} {
		if got := fence.RedisKey(name); got != want {
			t.Errorf("RedisKey(%q) = %s, want %s", name, got, want)
		}
	}
	r := servers.Redis(t)
	guard := fence.Redis{Eval: eval(r), Key: func(name string) string { return "mine:" + name }}
	must(t, guard.Set(t.Context(), fence.Of("a", 3), "k", "1"))
	if got := do(t, r, "GET", "mine:a"); got != "3" {
		t.Errorf("a key of one's own: %s", got)
	}
}

// TestRedisKeep: tokens are kept for ever, or so long after the last contact.
func TestRedisKeep(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	ctx := t.Context()
	must(t, fence.Redis{Eval: eval(r)}.Set(ctx, fence.Of("a", 3), "k", "1"))
	if got := do(t, r, "PTTL", "dibs:fence:{a}"); got != "-1" {
		t.Errorf("PTTL %s without Keep", got)
	}
	guard := fence.Redis{Eval: eval(r), Keep: time.Hour}
	for range 2 { // a contact with the same token counts too
		must(t, guard.Set(ctx, fence.Of("a", 4), "k", "1"))
		left, err := strconv.Atoi(do(t, r, "PTTL", "dibs:fence:{a}"))
		if err != nil || left < 1_800_000 || left > 3_600_000 {
			t.Errorf("PTTL %d with an hour, %v", left, err)
		}
		do(t, r, "PEXPIRE", "dibs:fence:{a}", "60000")
	}
}

func TestRedisStore(t *testing.T) {
	t.Parallel()
	guard := fence.Redis{Eval: eval(servers.Redis(t))}
	for _, step := range []struct{ offered, newest uint64 }{{5, 5}, {4, 5}, {6, 6}, {6, 6}} {
		if newest, err := guard.Raise(t.Context(), "a", step.offered); err != nil || newest != step.newest {
			t.Errorf("Raise(%d) = %d, %v; want %d", step.offered, newest, err, step.newest)
		}
	}
	down := errors.New("down")
	guard.Eval = func(context.Context, string, []string, []string) (any, error) { return nil, down }
	if _, err := guard.Raise(t.Context(), "a", 7); !errors.Is(err, down) {
		t.Errorf("a server that is down: %v", err)
	}
}

// TestRedisNeverGoesBack: accepted tokens never decrease, in random interleavings;
// the notes are made by the scripts, in the server's order.
func TestRedisNeverGoesBack(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	guard := fence.Redis{Eval: eval(r)}
	conns := make(chan *servers.RESP, 8)
	for range cap(conns) {
		c, err := r.Dial()
		must(t, err)
		defer c.Close()
		conns <- c
	}
	guard.Eval = func(_ context.Context, script string, keys, args []string) (any, error) {
		c := <-conns
		defer func() { conns <- c }()
		cmd := []any{"EVAL", script, len(keys)}
		for _, k := range slices.Concat(keys, args) {
			cmd = append(cmd, k)
		}
		return c.Do(cmd...)
	}
	neverGoesBack(t, func(lease fence.Fenced) error {
		_, err := guard.Run(t.Context(), lease, "return redis.call('RPUSH', KEYS[1], ARGV[1])",
			[]string{"notes" + lease.Name()}, strconv.FormatUint(lease.Fence(), 10))
		return err
	}, func(name string) (tokens []uint64) {
		reply, err := r.Do("LRANGE", "notes"+name, "0", "-1")
		must(t, err)
		for _, v := range reply.([]any) {
			n, err := strconv.ParseUint(v.(string), 10, 64)
			must(t, err)
			tokens = append(tokens, n)
		}
		return tokens
	})
}

// TestRedisInACluster: whatever the name, the fence's key and the user's lie in one
// slot; keys that don't are refused by the server, and nothing is written.
func TestRedisInACluster(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t, servers.RedisArgs("--cluster-enabled", "yes", "--cluster-port", "0"))
	do(t, r, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	for do(t, r, "CLUSTER", "INFO")[:len("cluster_state:ok")] != "cluster_state:ok" {
		time.Sleep(10 * time.Millisecond) // a node alone takes a moment to believe in itself
	}
	guard := fence.Redis{Eval: eval(r)}
	for _, name := range []string{"a", "orders/42", "}", "{", "{}", "{x}", "}{", "a}b{c", "%7D", "ä", " "} {
		key := "balance:" + strings.TrimPrefix(fence.RedisKey(name), "dibs:fence:")
		must(t, guard.Set(t.Context(), fence.Of(name, 2), key, "1"))
		stale(t, guard.Set(t.Context(), fence.Of(name, 1), key, "2"), fence.StaleError{Name: name, Offered: 1, Newest: 2})
	}
	err := guard.Set(t.Context(), fence.Of("a", 3), "elsewhere", "1")
	if err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
		t.Errorf("keys in two slots: %v", err)
	}
	if got := do(t, r, "GET", "dibs:fence:{a}"); got != "2" {
		t.Errorf("the newest token is %s, want 2", got)
	}
}
