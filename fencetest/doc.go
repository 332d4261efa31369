// Package fencetest tries what a resource does on its side with the client libraries
// that people use, which the root module doesn't import, on real PostgreSQL, MariaDB,
// SQLite and Redis servers: package fence, and a guard in the transaction of what is
// done once. It has nothing to import.
package fencetest
