// Package judge convicts stores and lock libraries by the history of what their
// clients saw.
//
// A history is a list of events by one clock that all clients share. The judge
// makes an attempt out of the events with one ID, and sweeps over the attempts
// of each name, in O(n log n):
//
//   - overlap: the windows in which holders may act never contradict law 2. A
//     window is [grant returned, min(release called, loss learned, the last
//     moment proved)].
//   - tokens: unique on their name, and larger than that of every attempt that
//     returned before this one began (law 11).
//   - fences: as law 12 says.
//   - refusals: nobody is refused while nobody can have been in the way.
//   - progress: a waiter does not wait beside a free name for longer than the
//     bound, once faults are over.
//   - leftovers: nothing is there at the end.
//
// A call whose outcome is unknown is open-ended: it may have happened, or happen
// still, so it excuses refusals for ever, and convicts nobody.
package judge
