// Package schedule tells when a job is due. A tick is an instant that every
// instance of a runner computes alike, from the expression, the time zone and the
// job's id alone, whatever its clock says: so one record in the store is enough
// for each tick to happen once.
//
// An expression that names hours goes by the wall clock: each of its times
// happens once a day. One that the clocks leave out happens at the moment of the
// change; of one that comes twice the first counts. An expression for every hour
// ("*/5 * * * *") and @every go by elapsed time, and don't notice a change.
package schedule
