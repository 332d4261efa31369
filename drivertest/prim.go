package drivertest

// primLaws are the laws of what is built from a lock: L50 and on.
var primLaws = sorted(limitLaws, onceLaws, allLaws, pathLaws, nestedLaws, electionLaws, leaseConvertLaws)
