// Package executor does a job's work once, under a lease: it runs a command or
// makes a request, keeps the end of what that says, and stops it when its time is
// over, when it is told to, or when the lease can't be trusted for long enough any
// more. When Run returns, nothing of the work goes on.
package executor
