// Command dibs runs commands under locks that many machines share.
package main

import (
	"os"

	"github.com/dibslock/dibs/cmd/internal/cli"

	_ "github.com/dibslock/dibs/memlock"
	_ "github.com/dibslock/dibs/pglock"
	_ "github.com/dibslock/dibs/redislock"
	_ "github.com/dibslock/dibs/sqlitelock"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
