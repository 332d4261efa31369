// Package pglock keeps locks in PostgreSQL.
package pglock
