// Package driver is the contract between dibs and a store: the few types that
// package dibs and every store share, and the laws that a store signs.
//
// # Words
//
// A name is what is locked. A claim is what one caller wants, or has, on one
// name. A grant is the store's yes; a proof is its answer to a renewal. A token
// is the fencing number of a grant. A place is a refused claim's position in
// line. A claim is live when it was granted and has not ended.
//
// # The life of a claim, in the store
//
//	           Acquire: fits                 Release
//	(nothing) ---------------> held ------------------------> (gone)
//	    |                       |  \__ Release, Keep left ____
//	    | Acquire: refused,     |                             |
//	    v Patience > 0          | its TTL ends, or it dies    v
//	  waiting ------> handed ---+---> Keep left? ---------> kept
//	         (law 25)           |                             |
//	                            +---> Delay? -> draining <----+ (after a death)
//	                                     |                    |
//	                                     v                    v
//	                                  (gone)               (gone)
//
// Held, handed, kept and draining claims all take up their units; so does a
// revoked one until its holder lets go or its TTL ends (law 22). A kept claim
// that came from a Release ends like a release; one that came from a death ends
// like a death (Delay, Grant.TookOver).
//
// # What every store answers
//
// ErrHeld: certainly not granted. ErrNotHeld: certainly not (or no longer)
// held. ErrRejected and [errors.ErrUnsupported]: certainly not applied, and
// asking again does not help. Every other error is an unknown outcome: the call
// may have been applied, or may still be applied later (law 5). A store never
// answers one for another.
//
// The laws are numbered; drivertest has a test for each, and docs/laws.md their
// text.
package driver
