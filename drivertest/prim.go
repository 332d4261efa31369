package drivertest

// primLaws are the laws of what is built from a lock: L50 and on, what L21 and L45
// ask of a lease and of a lock of several names, and L1 through each of them.
var primLaws = sorted(mutexLaws, limitLaws, onceLaws, allLaws, pathLaws, nestedLaws, electionLaws, leaseConvertLaws)
