package cli_test

import (
	_ "github.com/dibslock/dibs/sqlitelock"
	_ "github.com/rogpeppe/go-internal/testscript"
)
