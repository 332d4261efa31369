package dibs

import (
	"fmt"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// Path excludes everyone else from a node of a tree and all that is below it:
// a/b/c excludes other holders of a, of a/b, of a/b/c and of a/b/c/d, and not
// those of a/b/d. It writes the node and reads each of its ancestors, so that a
// store must grant shared claims; elsewhere every acquire is an
// [errors.ErrUnsupported] before any I/O.
func (c *Client) Path(name string) *Locker {
	leaf := c.Writer(name)
	if err := checkPath(name); err != nil {
		leaf.err = fmt.Errorf("dibs: %w", err)
		return leaf
	}
	if f := c.core.facts; f.Modes&driver.Shared == 0 {
		leaf.err = fmt.Errorf("dibs: %w", driver.Unsupportedf("%q: a path needs shared claims, which %s does not support", name, f.Driver))
		return leaf
	}
	ls := []*Locker{leaf}
	for i := range len(name) {
		if name[i] == '/' {
			ls = append(ls, c.Reader(name[:i]))
		}
	}
	if len(ls) == 1 {
		return leaf
	}
	return c.All(ls...)
}

// checkPath tells whether name is a path: an empty node would make two paths of
// what people take for one.
func checkPath(name string) error {
	for node := range strings.SplitSeq(name, "/") {
		if node == "" && name != "" {
			return driver.Rejectedf(name, "the path has an empty node: it must not begin or end with / nor have two in a row")
		}
	}
	return nil
}
