package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

func init() {
	driver.Register("redis-sentinel", openSentinel)
	driver.Register("rediss-sentinel", openSentinel)
}

const (
	lookEvery = time.Second            // the sentinels are asked who the master is
	lookGrace = 500 * time.Millisecond // how long the others may take when one has answered
)

// openSentinel opens
//
//	redis-sentinel://user:password@host1:26379,host2,host3/name-of-master/0
//
// as a Store on whatever server the sentinels say is the master. Besides what
// redis:// knows there are sentinel-user and sentinel-password, for the sentinels
// themselves.
func openSentinel(ctx context.Context, u *url.URL) (driver.Store, error) {
	configs, name, err := parseSentinel(u)
	if err != nil {
		return nil, err
	}
	values := u.Query()
	c, w := configs[0], &watchmen{name: name}
	for _, s := range configs {
		opt := s.client
		opt.SelectDB, opt.Username, opt.Password = 0, values.Get("sentinel-user"), values.Get("sentinel-password")
		w.links = append(w.links, startLink(opt, func(context.Context, *conn) error { return nil }))
	}
	c.locate, c.closing = w.master, w.close
	s, err := open(ctx, c)
	if err != nil {
		w.close()
		return nil, err
	}
	w.watch(s.link.(*link))
	if c.plain {
		return &Plain{s}, nil
	}
	return s, nil
}

// parseSentinel reads a URL as the master's, at each of the sentinels.
func parseSentinel(u *url.URL) (configs []config, name string, err error) {
	name, database, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if name == "" {
		return nil, "", driver.Rejectedf("", "the store's URL: want %s://host1,host2,host3/name-of-the-master", u.Scheme)
	}
	values := u.Query()
	values.Del("sentinel-user")
	values.Del("sentinel-password")
	one := *u
	one.Path, one.RawQuery = "/"+database, values.Encode()
	configs, err = parseHosts(&one, "sentinel", "26379")
	return configs, name, err
}

// parseHosts reads a URL of several hosts as one for each: redis+suffix:// as
// redis://, without a port as with this one.
func parseHosts(u *url.URL, suffix, port string) ([]config, error) {
	var all []config
	for host := range strings.SplitSeq(u.Host, ",") {
		one := *u
		one.Scheme = strings.TrimSuffix(u.Scheme, "-"+suffix)
		one.Host = host
		if host == "" {
			return nil, driver.Rejectedf("", "the store's URL: an empty host in %q", u.Host)
		}
		if one.Port() == "" {
			one.Host = net.JoinHostPort(one.Hostname(), port)
		}
		c, err := parse(&one)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// watchmen are the sentinels.
type watchmen struct {
	name  string
	links []*link
	end   context.CancelFunc // of watch; nil: it was not called
	work  sync.WaitGroup
}

// master asks all sentinels for the master's address, and believes most of them.
func (w *watchmen) master(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialPatience, errSilent)
	defer cancel()
	type said struct {
		addr string
		err  error
	}
	answers := make(chan said, len(w.links))
	for _, l := range w.links {
		go func() { // ends with ctx
			r := l.do(ctx, func(b rueidis.Builder) rueidis.Completed {
				return b.SentinelGetMasterAddrByName().Master(w.name).Build()
			})
			pair, err := r.AsStrSlice()
			switch {
			case rueidis.IsRedisNil(err), err == nil && len(pair) != 2:
				answers <- said{err: fmt.Errorf("the sentinel %s knows no master %q", l.opt.InitAddress[0], w.name)}
			case err != nil:
				answers <- said{err: fmt.Errorf("the sentinel %s: %w", l.opt.InitAddress[0], err)}
			default:
				answers <- said{addr: net.JoinHostPort(pair[0], pair[1])}
			}
		}()
	}
	var errs []error
	votes, best := make(map[string]int), ""
	collect(answers, len(w.links), lookGrace, func(a said) (good, enough bool) {
		if a.err != nil {
			errs = append(errs, a.err)
			return false, false
		}
		if votes[a.addr]++; votes[a.addr] > votes[best] {
			best = a.addr
		}
		return true, 2*votes[best] > len(w.links)
	})
	if best == "" {
		return "", fmt.Errorf("no sentinel knows the master: %w", errors.Join(errs...))
	}
	return best, nil
}

// watch looks whether the master is another by now, and has l dial that one: the
// old one may be alive and not know.
func (w *watchmen) watch(l *link) {
	ctx, end := context.WithCancel(context.Background())
	w.end = end
	w.work.Go(func() { // ends with close
		for {
			select {
			case <-time.After(lookEvery):
			case <-ctx.Done():
				return
			}
			l.mu.Lock()
			c := l.now
			l.mu.Unlock()
			if c == nil {
				continue
			}
			if addr, err := w.master(ctx); err == nil && addr != c.addr {
				c.cut()
			}
		}
	})
}

func (w *watchmen) close() {
	if w.end != nil {
		w.end()
	}
	w.work.Wait()
	for _, l := range w.links {
		l.close()
	}
}

// isMaster is the greeting of a server that should be one.
func isMaster(ctx context.Context, c *conn) error {
	role, err := c.do(ctx, c.client.B().Role().Build()).ToArray()
	if err != nil {
		return err
	}
	if len(role) > 0 {
		if word, _ := role[0].ToString(); word == "master" {
			return nil
		}
	}
	return fmt.Errorf("%s is a replica: a failover may be under way", c.addr)
}

// at is opt with another server's address. Its certificate has to be for that one,
// unless the URL named another.
func at(opt rueidis.ClientOption, addr string) rueidis.ClientOption {
	old, _, _ := net.SplitHostPort(opt.InitAddress[0])
	opt.InitAddress = []string{addr}
	if host, _, err := net.SplitHostPort(addr); err == nil && opt.TLSConfig != nil && opt.TLSConfig.ServerName == old {
		opt.TLSConfig = opt.TLSConfig.Clone()
		opt.TLSConfig.ServerName = host
	}
	return opt
}
