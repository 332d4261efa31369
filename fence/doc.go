// Package fence is the resource's side of a fencing token: what is written to
// refuses a holder that lost its lock and doesn't know it yet.
//
// A lock can't do that alone. A holder that is frozen (a long collection of
// garbage, a suspended machine, SIGSTOP) in the middle of a step can't be told
// that its time is over; when it wakes up its write goes out, and another may hold
// the lock by then. Every exclusive or shared grant of dibs carries a token that
// grows, [Fenced.Fence]. A resource that remembers the largest token that it has
// seen under a name, and refuses any smaller one, is safe from such a write.
//
//   - [SQL]: in the transaction that writes. PostgreSQL, MySQL, MariaDB, SQLite,
//     by database/sql, or by pgx with [CheckPgx].
//   - [Redis]: inside the script that writes, with any client.
//   - [Transport] and [Gate]: a header, and the server's middleware.
//   - [Memory]: what lives in this process.
//
// # What they all do
//
// The check and the write are one step: a check that comes before the write is no
// better than none, since the holder may freeze between the two.
//
// The first contact raises: as soon as a newer holder has touched the resource in
// whatever way, older ones are refused. So guard reads as well: a holder that has
// read and not yet written must be safe from its predecessor's late write.
//
// A token is compared with others of its name alone. What one lock protects goes
// by the lock's name, and locks of two stores must not share a guard under one
// name: their tokens have nothing to do with each other.
//
// Fence 0 means that there is nothing to compare, and is refused everywhere:
// [ErrNoFence].
//
// # What they can't do
//
// Nothing is protected before the newer holder's first contact: until then the
// resource can't know of it. Holders with the same token, such as the readers of
// one generation, are not kept apart. What can't check (an e-mail that was sent) is
// not undone. And the memory of the largest token is as durable as what holds it.
//
// The idea is Kleppmann's, "How to do distributed locking" (2016), and Chubby's
// sequencers (Burrows, OSDI 2006).
package fence
