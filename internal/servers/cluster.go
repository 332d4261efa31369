package servers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// clusterSlots is how many hash slots a Redis Cluster has.
const clusterSlots = 16384

// RedisCluster is a Redis Cluster: the first half of its nodes are the masters at
// the start, and node i + len/2 is the replica of node i. A node that is silent
// for a second is taken for dead.
type RedisCluster struct {
	Nodes []*RedisServer
}

// Cluster starts a cluster of masters with a replica each, that ends with the
// test. It returns when all nodes say that it works.
func Cluster(t testing.TB, masters int, opts ...RedisOption) *RedisCluster {
	t.Helper()
	all, err := launchNodes(t.TempDir(), masters, opts)
	c := &RedisCluster{}
	for _, r := range all {
		if r != nil {
			keep(t, r)
			c.Nodes = append(c.Nodes, r)
		}
	}
	if err == nil {
		err = c.form(masters)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// StartCluster starts a cluster with its data in dir, for a program that is no
// test. The caller ends it with Stop; on Linux it ends with the program too.
func StartCluster(dir string, masters int, opts ...RedisOption) (*RedisCluster, error) {
	all, err := launchNodes(dir, masters, opts)
	c := &RedisCluster{Nodes: slices.DeleteFunc(all, func(r *RedisServer) bool { return r == nil })}
	if err == nil {
		err = c.form(masters)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// Stop ends the nodes, as an administrator would.
func (c *RedisCluster) Stop() error {
	var errs []error
	for _, r := range c.Nodes {
		errs = append(errs, r.Stop())
	}
	return errors.Join(errs...)
}

// launchNodes starts servers that may become a cluster of masters with a replica
// each. If one fails, the others come back with the error.
func launchNodes(dir string, masters int, opts []RedisOption) ([]*RedisServer, error) {
	return together(2*masters, func(i int) (*RedisServer, error) {
		bus, err := takePort()
		if err != nil {
			return nil, err
		}
		mine := RedisArgs("--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "1000",
			"--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0", "--cluster-config-file", fmt.Sprintf("%s/nodes-%d.conf", dir, i))
		return launchRedis(dir, takePort, slices.Concat(opts, []RedisOption{mine}))
	})
}

// form makes one cluster of nodes that do not know each other.
func (c *RedisCluster) form(masters int) error {
	ids := make([]string, masters)
	bus := func(r *RedisServer) (string, error) {
		v, err := r.Do("CONFIG", "GET", "cluster-port")
		return pairs(v)["cluster-port"], err
	}
	for i, r := range c.Nodes {
		if _, err := r.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return err
		}
		if i < masters {
			id, err := r.Do("CLUSTER", "MYID")
			if err == nil {
				ids[i] = fmt.Sprint(id)
				_, err = r.Do("CLUSTER", "ADDSLOTSRANGE", i*clusterSlots/masters, (i+1)*clusterSlots/masters-1)
			}
			if err != nil {
				return err
			}
		}
		if i > 0 {
			port, err := bus(r)
			if err == nil {
				_, err = c.Nodes[0].Do("CLUSTER", "MEET", "127.0.0.1", r.Port(), port)
			}
			if err != nil {
				return err
			}
		}
	}
	// A node follows another as soon as it knows it.
	err := eventually("the nodes of the cluster know each other", func() bool {
		for i, r := range c.Nodes[masters:] {
			if _, err := r.Do("CLUSTER", "REPLICATE", ids[i]); err != nil {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	return c.Works()
}

// Works waits until every node that runs says that the cluster works and that
// the others do, and every replica of it has all that its master has.
func (c *RedisCluster) Works() error {
	return eventually("the cluster works", func() bool {
		for _, r := range c.Nodes {
			v, err := r.Do("CLUSTER", "INFO")
			info := fmt.Sprint(v)
			known := "cluster_known_nodes:" + strconv.Itoa(len(c.Nodes)) + "\r\n"
			if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, known) {
				return false
			}
			repl, err := r.Do("INFO", "replication")
			if s := fmt.Sprint(repl); err != nil || strings.Contains(s, "role:slave") && !strings.Contains(s, "master_link_status:up") {
				return false
			}
			nodes, err := r.Do("CLUSTER", "NODES")
			if err != nil || strings.Contains(fmt.Sprint(nodes), "fail") {
				return false
			}
		}
		return true
	})
}

// Addrs returns the nodes' addresses.
func (c *RedisCluster) Addrs() (addrs []string) {
	for _, r := range c.Nodes {
		addrs = append(addrs, r.Addr())
	}
	return addrs
}

// eventually waits for ok, for as long as a server may take to start.
func eventually(what string, ok func() bool) error {
	for deadline := time.Now().Add(startPatience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.New("servers: not within " + startPatience.String() + ": " + what)
		}
	}
	return nil
}
