package redislock

import (
	"context"
	"net/url"
	"strings"
	"unicode"

	"github.com/dibslock/dibs/driver"
)

// What a user of the store needs: the commands that the scripts call, and those
// that the client sends by itself. info is for Diagnose.
const (
	needed = "+evalsha +eval +get +mget +set +del +time +incr +pttl +pexpire +pexpireat +pexpiretime +publish +subscribe +ping +select " +
		"+hget +hset +hsetnx +hdel +hmget +lindex +lpop +lpush +lrange +lrem +rpop +rpush +scan +xadd +xrange +info"
	neededOfMaster  = " +role"
	neededOfCluster = " +cluster|info +cluster|slots +asking +spublish +ssubscribe"

	// A node's user may make it one, and let it back in: scan, unlink and hgetall are
	// for that, and for the greeting.
	neededOfNode = "+evalsha +eval +script|load +get +set +del +time +ping +select +hget +hset +hmget +hgetall +zadd +zrem +zrange " +
		"+exists +scan +unlink +info +config|get"
	neededOfPlainNode = " +pttl"
)

func init() {
	for _, scheme := range []string{"redis", "rediss", "redis+unix"} {
		driver.RegisterSetup(scheme, planSetup)
	}
	for _, suffix := range []string{"sentinel", "cluster"} {
		driver.RegisterSetup("redis-"+suffix, planSetups)
		driver.RegisterSetup("rediss-"+suffix, planSetups)
	}
	driver.RegisterSetup("redlock", planQuorum)
	driver.RegisterSetup("redlocks", planQuorum)
}

// planSetup tells what a server needs: nothing but a user.
func planSetup(u *url.URL) (driver.Setup, error) {
	c, err := parse(u)
	if err != nil {
		return driver.Setup{}, err
	}
	return userSetup(c, needed+confirming(c)), nil
}

// planSetups tells what every server behind sentinels, or of a cluster, needs.
func planSetups(u *url.URL) (driver.Setup, error) {
	var configs []config
	var err error
	more := neededOfCluster
	if strings.HasSuffix(u.Scheme, "-sentinel") {
		more = neededOfMaster
		configs, _, err = parseSentinel(u)
	} else {
		configs, err = parseCluster(u)
	}
	if err != nil {
		return driver.Setup{}, err
	}
	return userSetup(configs[0], needed+more+confirming(configs[0])), nil
}

func confirming(c config) string {
	if c.replicas > 0 {
		return " +wait"
	}
	return ""
}

func userSetup(c config, commands string) driver.Setup {
	return driver.Setup{Rights: func(user string) string {
		return rights(c.prefix, c.plain, user, "&"+aclPattern(c.prefix)+":to:*", commands)
	}}
}

// aclPattern is the pattern of an ACL for what begins with prefix. A pattern can't
// have a blank, however it is quoted, and redis-cli reads quotes: ? is any one byte.
func aclPattern(prefix string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("\"'\\*?[]^", r) {
			return '?'
		}
		return r
	}, prefix)
}

// rights is the command that makes a user of the store. In the plain layout the
// names are keys too.
func rights(prefix string, plain bool, user, channels, commands string) string {
	keys := "~" + aclPattern(prefix) + ":*"
	if plain {
		keys += " ~NAMES*"
	}
	words := []string{"ACL SETUSER", user, "on >PASSWORD resetkeys", keys, "resetchannels"}
	if channels != "" {
		words = append(words, channels)
	}
	return strings.Join(append(words, "-@all", commands), " ")
}

// planQuorum tells what the nodes of a quorum need: to be made one, and a user.
func planQuorum(u *url.URL) (driver.Setup, error) {
	c, err := parseRedlock(u)
	if err != nil {
		return driver.Setup{}, err
	}
	commands := neededOfNode
	if c.keys.plain {
		commands += neededOfPlainNode
	}
	rawURL := u.String()
	return driver.Setup{
		Makes:  "the nodes a quorum: a marker on each, without which it does not vote",
		Make:   func(ctx context.Context) (bool, error) { return makeQuorum(ctx, rawURL) },
		Rights: func(user string) string { return rights(c.keys.space, c.keys.plain, user, "", commands) },
	}, nil
}

// makeQuorum makes the nodes of rawURL a quorum unless they are one.
func makeQuorum(ctx context.Context, rawURL string) (made bool, err error) {
	nodes, err := RedlockStatus(ctx, rawURL)
	if err != nil {
		return false, err
	}
	votes := 0
	for _, n := range nodes {
		if n.Votes {
			votes++
		}
	}
	if votes == len(nodes) {
		return false, nil
	}
	return votes == 0, RedlockInit(ctx, rawURL) // which says what is wrong with some
}
