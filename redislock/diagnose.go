package redislock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

var (
	_ driver.Diagnoser = (*Store)(nil)
	_ driver.Diagnoser = (*Plain)(nil)
)

// leastVersion is the first major version that has all that the scripts use.
const leastVersion = 7

// Diagnose looks at the server: what it would do to locks if its memory ran full,
// if it restarted, or if another took its place.
func (s *Store) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	x := &exam{}
	info, err := s.ask(ctx, func(b rueidis.Builder) rueidis.Completed { return b.Info().Build() }).ToString()
	err = s.diagnosed(ctx, err)
	switch {
	case errors.Is(err, fs.ErrPermission):
		x.add(driver.Info, "server", err.Error()+": nothing is known of its memory, its disk and its replicas", "allow it to the user: +info; or ask as another user")
	case err != nil:
		return nil, err
	default:
		x.read(info)
		x.server()
		x.role()
		x.memory()
		x.eviction()
		x.persistence(func(name string) string { return s.setting(ctx, name) })
		x.replicas()
		x.clients()
	}
	x.wire(s.link.options())
	return x.found, x.signals(ctx, s)
}

// signals publishes on the client's own channel, and subscribes to it.
func (x *exam) signals(ctx context.Context, s *Store) error {
	const check, without = "signals", ": who waits is not told of a release, and asks once a second instead; who loses a claim is told when it renews that"
	verb := "publish"
	err := s.diagnosed(ctx, s.ask(ctx, func(b rueidis.Builder) rueidis.Completed {
		if s.inbox.sharded {
			return b.Spublish().Channel(s.inbox.channel).Message("").Build()
		}
		return b.Publish().Channel(s.inbox.channel).Message("").Build()
	}).Error())
	if err == nil {
		verb = "subscribe"
		_, err = s.listen(ctx, "")
	}
	sharded := ""
	if s.inbox.sharded {
		sharded = "s"
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		x.add(driver.Warn, check, "the user may not "+verb+without, fmt.Sprintf("allow it to the user: &%s:to:* +%[2]spublish +%[2]ssubscribe", s.keys.prefix, sharded))
	case errors.Is(err, driver.ErrRejected):
		x.add(driver.Warn, check, err.Error()+without, "")
	case err != nil:
		return err
	default:
		x.add(driver.Fine, check, "who waits is told at once", "")
	}
	return nil
}

// Diagnose is Store.Diagnose, and says what the layout lacks.
func (p *Plain) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	found, err := p.s.Diagnose(ctx)
	return append(found, driver.Finding{
		Check: "layout", Level: driver.Info,
		Text: "plain: exclusive locks alone, shared with programs that are not dibs; no line, no signals, no journal; a key without a time to live is refused, and not waited for",
		Hint: "all programs that lock a name must agree on the layout: clients of the other one see nothing of these locks",
	}), err
}

func (s *Store) ask(ctx context.Context, build func(rueidis.Builder) rueidis.Completed) rueidis.RedisResult {
	return s.link.do(ctx, build)
}

// diagnosed is err as the store tells errors, or nil.
func (s *Store) diagnosed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return s.failed(ctx, "", err)
}

// setting is a line of the server's configuration; "": the user may not see it.
func (s *Store) setting(ctx context.Context, name string) string {
	all, err := s.ask(ctx, func(b rueidis.Builder) rueidis.Completed { return b.ConfigGet().Parameter(name).Build() }).AsStrMap()
	if err != nil {
		return ""
	}
	return all[name]
}

// An exam collects findings from what INFO tells.
type exam struct {
	info  map[string]string
	found []driver.Finding
}

func (x *exam) add(level driver.Level, check, text, hint string) {
	x.found = append(x.found, driver.Finding{Check: check, Level: level, Text: text, Hint: hint})
}

func (x *exam) read(info string) {
	x.info = make(map[string]string)
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			x.info[key] = value
		}
	}
}

func (x *exam) number(key string) int64 {
	n, _ := strconv.ParseInt(x.info[key], 10, 64)
	return n
}

func (x *exam) server() {
	name, version := "Redis", x.info["redis_version"]
	if v := x.info["valkey_version"]; v != "" {
		name, version = "Valkey", v
	}
	text := fmt.Sprintf("%s %s, up for %s", name, version, time.Duration(x.number("uptime_in_seconds"))*time.Second)
	major, _, _ := strings.Cut(x.info["redis_version"], ".")
	n, err := strconv.Atoi(major)
	switch {
	case x.info["cluster_enabled"] == "1":
		x.add(driver.Unfit, "server", text+"; it is part of a cluster, and redis:// talks to one server", "name a server that is in no cluster")
	case err == nil && n < leastVersion:
		x.add(driver.Unfit, "server", text, "Redis 7.0 or later, or Valkey, is needed")
	default:
		x.add(driver.Fine, "server", text, "")
	}
}

func (x *exam) role() {
	if x.info["role"] != "slave" {
		return
	}
	text := "it is a replica of " + net.JoinHostPort(x.info["master_host"], x.info["master_port"]) + ", and takes no changes"
	x.add(driver.Unfit, "role", text, "name the master")
}

func (x *exam) memory() {
	used, most := x.number("used_memory"), x.number("maxmemory")
	text := fmt.Sprintf("%s of %s in use", mebibytes(used), mebibytes(most))
	switch {
	case most == 0:
		x.add(driver.Info, "memory", mebibytes(used)+" in use, and no limit (maxmemory 0): the kernel may kill the server, and with it all locks that are not on disk", "set maxmemory below what the machine has")
	case used > most/10*9:
		x.add(driver.Warn, "memory", text+": when it is full, nothing more is granted", "raise maxmemory, or give the locks a server of their own")
	default:
		x.add(driver.Fine, "memory", text, "")
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func (x *exam) eviction() {
	const hint = "maxmemory-policy noeviction"
	switch policy := x.info["maxmemory_policy"]; {
	case policy == "noeviction":
		x.add(driver.Fine, "eviction", "none (noeviction)", "")
	case policy == "":
		x.add(driver.Info, "eviction", "the server does not tell its policy", hint)
	case x.number("maxmemory") == 0:
		x.add(driver.Warn, "eviction", policy+": nothing is evicted while maxmemory is 0; with a limit the server may throw locks away", hint)
	default:
		x.add(driver.Warn, "eviction", policy+": the server may throw a lock away, and give it to another while its holder still trusts it", hint)
	}
}

func (x *exam) persistence(setting func(string) string) {
	const check = "persistence"
	switch {
	case x.info["loading"] == "1":
		x.add(driver.Warn, check, "the server still reads its data", "")
	case x.info["aof_enabled"] == "1" && x.info["aof_last_write_status"] != "ok",
		x.info["rdb_last_bgsave_status"] == "err":
		x.add(driver.Warn, check, "the server can't write its data to disk: it may refuse changes", "look at its log and its disk")
	case x.info["aof_enabled"] != "1":
		x.add(driver.Warn, check, "no append-only file: a restart forgets locks that are held; their holders are told at the next renewal, and until then others may be granted the same", "appendonly yes and appendfsync always, if a restart must keep the locks")
	default:
		x.fsync(setting("appendfsync"))
	}
}

func (x *exam) fsync(how string) {
	const check = "persistence"
	switch how {
	case "always":
		x.add(driver.Fine, check, "every change is on disk before it is answered (appendfsync always)", "")
	case "":
		x.add(driver.Info, check, "an append-only file; the user may not see how often it is synced", "appendfsync always, if a crash must keep the locks")
	default:
		x.add(driver.Warn, check, "an append-only file that is synced later (appendfsync "+how+"): a crash forgets the locks of the last moments", "appendfsync always, if a crash must keep the locks")
	}
}

func (x *exam) replicas() {
	n := x.number("connected_slaves")
	if n == 0 {
		x.add(driver.Fine, "replicas", "none: there is no failover that could forget a lock", "")
		return
	}
	x.add(driver.Warn, "replicas", fmt.Sprintf("%d: a failover forgets what was not replicated yet, so a lock can be held twice across it", n), "accept that, or use a server without failover; and have the resource check fences")
}

func (x *exam) clients() {
	now, most := x.number("connected_clients"), x.number("maxclients")
	if most > 0 && now > most/10*9 {
		x.add(driver.Warn, "clients", fmt.Sprintf("%d of %d connections are in use", now, most), "raise maxclients")
	}
}

// wire looks at what others could read.
func (x *exam) wire(o rueidis.ClientOption) {
	const check = "wire"
	host, _, err := net.SplitHostPort(o.InitAddress[0])
	ip := net.ParseIP(host)
	switch {
	case err != nil || host == "localhost" || ip != nil && ip.IsLoopback():
		x.add(driver.Fine, check, "within this host", "")
	case o.TLSConfig != nil:
		x.add(driver.Fine, check, "encrypted", "")
	case o.Password != "":
		x.add(driver.Warn, check, "not encrypted: who can listen on the network has the password", "rediss://")
	default:
		x.add(driver.Warn, check, "not encrypted, and without a password: who reaches the server can take locks away", "rediss://, and a user of its own")
	}
}
