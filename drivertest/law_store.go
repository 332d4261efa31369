package drivertest

// storeLaws are the laws of a store: L1 to L30 and L46 to L49, and what L45 asks
// of one. Each law_*.go has a list of its own, which is an argument here.
var storeLaws = sorted(
	exclusionLaws, acquireLaws, refusalLaws, boundsLaws,
	tokenLaws, renewLaws, lossLaws, clockLaws, keepLaws, releasingLaws, convertLaws, revokeLaws,
	lineLaws, handOverLaws, signalLaws, batchLaws, recordLaws,
)
