module github.com/dibslock/dibs/bench

go 1.26.0

require (
	github.com/dibslock/dibs v0.0.0
	github.com/dibslock/dibs/sqlitelock v0.0.0
	modernc.org/sqlite v1.62.0
)

replace (
	github.com/dibslock/dibs => ../
	github.com/dibslock/dibs/sqlitelock => ../sqlitelock
)
