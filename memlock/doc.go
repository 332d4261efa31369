// Package memlock is the reference store: the locks of one process, in its
// memory. It keeps every law and has every optional power, in the plainest form,
// so that its source can be read as the definition of the contract in package
// driver. It serves programs that have one process, and tests.
//
// All state is in maps behind one mutex. No goroutine and no timer runs: each
// call first ends what has ended by the clock (name.end), so that nobody can see
// the difference. The clock is Go's monotonic one, and that of the bubble in
// [testing/synctest].
//
// A name exists while somebody holds it or waits for it, and while its last
// holder's death has not been told to the next (Grant.TookOver). It is then
// forgotten, and only the memory's high-water mark remembers its tokens.
//
// # What can go wrong
//
// The end of the process ends every claim, every token and every record: the
// tokens fence as long as the process is up. A suspended machine suspends the
// monotonic clock, so that claims outlive their TTL by the suspension; the
// holders, in the same process, slept too.
package memlock
