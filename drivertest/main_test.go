package drivertest_test

import (
	"os"
	"testing"
)

// frozen is what a child of TestTortureByFreezing does instead of the tests.
var frozen func() int

const frozenEnv = "DIBS_FROZEN_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(frozenEnv) != "" {
		os.Exit(frozen())
	}
	os.Exit(m.Run())
}
