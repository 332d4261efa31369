// Package book is what the instances of a runner know together: runs and their
// logs, the queues, which tick was decided last, what is paused, which requests
// were seen before, and which instances are there. All of it is in the store's
// Records, and nothing of it in a process.
//
//	run/<~uuid>      a run; the complement of its UUIDv7, so that the newest is listed first
//	log/<uuid>       the end of its output
//	job/<id>         whether a job is paused, and its runs, the newest first
//	queue/<id>       the runs that wait, in order
//	tick/<id>        the tick that was decided last
//	key/<hash>       an Idempotency-Key and the run that it started
//	instances        who is there
//	instance/<uuid>  what one of them is doing; it alone writes it
//	orders/<uuid>    what others want of it
//
// Every change is by version (law 46), and is made again after an answer that was
// not clear: so each must recognize what it did itself. A run is written under
// the token of its lock (law 47).
package book
