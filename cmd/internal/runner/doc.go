// Package runner runs jobs, each once at a time across all the instances that
// share a store. Whatever starts a job goes through one gate:
//
//	paused?  a key seen before?  the lock, or the queue  the rate limit
//
// in this order, so that what is refused or replayed uses no quota. A run is a
// record in the store from the moment when it is accepted; the lock's token is in
// it, so that who lost the lock can't write it any more.
//
// There is no leader. Each instance says what it has in its hands (roster.go) and
// looks at what the others say (sweep.go). Whose word is old is suspected, which
// costs a try for the lock; that the lock is free, or another's, is the proof.
package runner
