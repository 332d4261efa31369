package redislock

import (
	"net/url"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// needed are the commands that a user of the store needs: what the scripts call,
// and what the client sends by itself. info is for Diagnose.
const needed = "+evalsha +eval +get +set +del +time +incr +pttl +pexpire +pexpireat +pexpiretime +publish +subscribe +ping +select " +
	"+hget +hset +hdel +hmget +lindex +lpop +lrange +lrem +rpush +scan +xadd +xrange +info"

func init() {
	for _, scheme := range []string{"redis", "rediss", "redis+unix"} {
		driver.RegisterSetup(scheme, planSetup)
	}
}

// planSetup tells what a server needs: nothing but a user.
func planSetup(u *url.URL) (driver.Setup, error) {
	c, err := parse(u)
	if err != nil {
		return driver.Setup{}, err
	}
	return driver.Setup{Rights: func(user string) string { return rights(c.prefix, c.plain, user) }}, nil
}

// rights is the command that makes a user of the store. In the plain layout the
// names are keys too.
func rights(prefix string, plain bool, user string) string {
	keys := "~" + prefix + ":*"
	if plain {
		keys += " ~NAMES*"
	}
	return strings.Join([]string{"ACL SETUSER", user, "on >PASSWORD resetkeys", keys, "resetchannels &" + prefix + ":to:* -@all", needed}, " ")
}
