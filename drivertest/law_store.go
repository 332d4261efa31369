package drivertest

// storeLaws are the laws of a store: L1 to L30 and L46 to L49, and what L44 and
// L45 ask of one. Each law_*.go has a list of its own, which is an argument here.
var storeLaws = sorted(
	exclusionLaws, acquireLaws, refusalLaws, boundsLaws, tokenLaws, renewLaws, endLaws, convertLaws,
	lineLaws, signalLaws, recordLaws,
)
