//go:build !unix

package servers

import "syscall"

// An account is the user that a server runs as; here, always the test's own.
type account struct{}

func accountNamed(string) (*account, error) { return nil, nil }

func (a *account) attr(*syscall.SysProcAttr) {}

func (a *account) give(string) error { return nil }
