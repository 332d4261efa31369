package driver

import (
	"net/url"
	"strings"
)

// ParseURL parses a store's URL. It is url.Parse, which knows one host, for URLs of
// several too: redlock://user:password@[::1]:6379,[::2]:6379,host:6379/0. Their Host
// is the list as it is written, the brackets of IPv6 addresses included.
func ParseURL(rawURL string) (*url.URL, error) {
	from, to := hosts(rawURL)
	list := rawURL[from:to]
	if !strings.Contains(list, ",") || !strings.Contains(list, "[") {
		return url.Parse(rawURL)
	}
	var all []string
	for host := range strings.SplitSeq(list, ",") {
		one, err := url.Parse("//" + host)
		if err != nil {
			return nil, err
		}
		all = append(all, one.Host)
	}
	u, err := url.Parse(rawURL[:from] + "hosts" + rawURL[to:])
	if err != nil {
		return nil, err
	}
	u.Host = strings.Join(all, ",")
	return u, nil
}

// hosts tells where the hosts of a URL are in it.
func hosts(rawURL string) (from, to int) {
	scheme, rest, found := strings.Cut(rawURL, "://")
	if !found {
		return 0, 0
	}
	from = len(scheme) + len("://")
	to = len(rawURL)
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		to = from + end
	}
	return from + strings.LastIndex(rawURL[from:to], "@") + 1, to
}
