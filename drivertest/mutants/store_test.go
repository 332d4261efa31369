package mutants_test

import "slices"

// storeMutants break memlock, or what package driver does for it.
var storeMutants = slices.Concat(acquireMutants, renewMutants, lineMutants, recordMutants)

const (
	acquireGo = "memlock/acquire.go"
	claimGo   = "driver/claim.go"
	convertGo = "memlock/convert.go"
	factsGo   = "driver/facts.go"
	journalGo = "memlock/journal.go"
	listGo    = "memlock/list.go"
	lossesGo  = "memlock/losses.go"
	nameGo    = "memlock/name.go"
	recordsGo = "memlock/records.go"
	releaseGo = "memlock/release.go"
	renewGo   = "memlock/renew.go"
	revokeGo  = "memlock/revoke.go"
	storeGo   = "memlock/store.go"
	watchGo   = "memlock/watch.go"
)

// The tests of memlock that run the suite on a memory with options.
const (
	exclusiveOnly = "^TestConformanceExclusiveOnly$/^laws$/^L7_"
	highMark      = "^TestConformanceFromHighMark$/^laws$/^L13_"
)

// The core's row of this law does not end if every waiter wakes every other.
const waitingIsCheap = "^TestConformance$/^laws$/^L30_WaitingIsCheap$"
