package redislock

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

func init() {
	driver.Register("redlock", openRedlockURL)
	driver.Register("redlocks", openRedlockURL)
}

func openRedlockURL(ctx context.Context, u *url.URL) (driver.Store, error) {
	c, err := parseRedlock(u)
	if err != nil {
		return nil, err
	}
	return openRedlock(ctx, c)
}

// quorumConfig is what a URL says.
type quorumConfig struct {
	nodes []rueidis.ClientOption
	keys  quorumKeys
}

// parseRedlock reads
//
//	redlock://user:password@host1:6379,host2:6379,host3:6379/0      plain TCP
//	redlocks://...                                                  TLS
//
// and the parameters of redis://, but for the journal. Every node has the same
// database, user and password.
func parseRedlock(u *url.URL) (quorumConfig, error) {
	bad := func(format string, args ...any) (quorumConfig, error) {
		return quorumConfig{}, driver.Rejectedf("", "the store's URL: "+format, args...)
	}
	hosts := strings.Split(u.Host, ",")
	if n := len(hosts); n < 3 || n%2 == 0 {
		return bad("%d nodes: a quorum has an odd number of them, and at least three (an even one stands the loss of no more nodes than one less does)", n)
	}
	if u.Query().Has("journal") {
		return bad("a quorum has no journal")
	}
	var c quorumConfig
	var addrs []string
	for _, host := range hosts {
		one := *u
		one.Host, one.Scheme = host, "redis"
		if u.Scheme == "redlocks" {
			one.Scheme = "rediss"
		}
		if host == "" {
			return bad("an empty node in %q", u.Host)
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			one.Host = net.JoinHostPort(strings.Trim(host, "[]"), "6379")
		}
		node, err := parse(&one)
		if err != nil {
			return c, err
		}
		addr := node.client.InitAddress[0]
		if slices.Contains(addrs, addr) {
			return bad("the node %s is listed twice", addr)
		}
		addrs = append(addrs, addr)
		c.nodes = append(c.nodes, node.client)
		c.keys = newQuorumKeys(node.prefix, node.plain)
	}
	return c, nil
}
