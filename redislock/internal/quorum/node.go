package quorum

// A Node is what one node knows about one name. Time does not occur: a claim may
// be dropped at any moment ([Node.Drop]), and nothing that follows relies on when.
type Node struct {
	Holder  uint8  // the claim that has the name; 0: nobody
	Counter uint64 // never decreases while the node keeps its memory
	Revoked bool   // the name was taken away from Holder, and is not free yet
}

// Ask is the first request of claim t: it takes the name if nobody has it.
// Repeated, it finds its own earlier success.
func (n *Node) Ask(t uint8) Vote {
	if n.Holder == 0 {
		n.Holder = t
		n.Counter++
	}
	if !n.has(t) {
		return Vote{Held, n.Counter}
	}
	return Vote{Mine, n.Counter}
}

// Settle raises the counter to fence under claim t, or takes the name with that
// counter, if the node was slow or away when it was asked. It refuses where the
// counter has passed fence: that is what makes fences unique.
func (n *Node) Settle(t uint8, fence uint64) Vote {
	switch {
	case n.has(t) && n.Counter > fence:
		return Vote{Passed, n.Counter}
	case n.has(t), n.Holder == 0 && n.Counter < fence:
		n.Holder, n.Counter = t, fence
		return Vote{Mine, fence}
	}
	return Vote{Held, n.Counter}
}

// Renew tells whether t still has the name under fence. It changes nothing but
// how long the name stays taken.
func (n *Node) Renew(t uint8, fence uint64) Vote {
	switch {
	case n.has(t) && n.Counter == fence:
		return Vote{Mine, fence}
	case n.has(t) && n.Counter < fence:
		return Vote{Behind, n.Counter}
	}
	return Vote{Held, n.Counter}
}

// Release ends t's claim. A fence of 0 stands for an attempt that was given up, and so
// was never one that could be revoked; one that was granted is known to all nodes from
// then on.
func (n *Node) Release(t uint8, fence uint64) {
	if fence == 0 && n.has(t) || fence > 0 && n.Holder == t && n.Counter <= fence {
		n.Drop()
	}
	n.Counter = max(n.Counter, fence)
}

// Revoke takes the name away from the claim that has it under fence. It stays closed
// until the claim is released or its time to live ends.
func (n *Node) Revoke(fence uint64) Vote {
	if n.Holder == 0 || n.Counter != fence {
		return Vote{Held, n.Counter}
	}
	n.Revoked = true
	return Vote{Mine, fence}
}

// Drop ends whatever claim there is, as a time to live does, or an operator.
func (n *Node) Drop() { n.Holder, n.Revoked = 0, false }

// has tells whether t has the name, and it was not taken away.
func (n *Node) has(t uint8) bool { return n.Holder == t && !n.Revoked }

// Forget makes the node forget a name that nobody has: its counter starts from
// base when the name comes back, which is at least as large.
func (n *Node) Forget(base uint64) {
	if n.Holder == 0 {
		n.Counter = max(n.Counter, base)
	}
}
