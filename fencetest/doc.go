// Package fencetest tries package fence with the client libraries that people use
// it with, which the root module doesn't import, on real PostgreSQL, MariaDB, SQLite
// and Redis servers. It has nothing to import.
package fencetest
