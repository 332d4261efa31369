package memlock

import "github.com/dibslock/dibs/driver"

// shrinks tells whether c is a conversion that always succeeds: to fewer units
// of the same capacity, or from exclusive to anything. All others grow: they
// need room, and wait before everybody else.
func (n *name) shrinks(c driver.Claim) bool {
	from := n.held(c.From)
	return from != nil && (from.Mode() == driver.Exclusive || from.Capacity == c.Capacity && c.Units < from.Units)
}
