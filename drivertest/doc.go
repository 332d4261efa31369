// Package drivertest is the conformance suite of dibs: every store passes it,
// under faults, and the core passes it on every store.
//
// [Run] has a test for each law of docs/laws.md, named for the law, and a short
// [Torture]. A store's own test is
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{Name: "mem", Bubble: true, New: newStorage})
//	}
//
// under exactly that name, because the mutants run it by name: package mutants
// breaks the reference store or the core on purpose, once for each law, and
// fails if the law's test does not notice.
//
// Faults come from a [Link]: [Wrap] and [NewLink] put one in front of an embedded
// store, in process, and package proxy puts one on the wire. [Storm] kills real
// processes that hold something of a store that others can open by its URL.
package drivertest
