package drivertest

// coreLaws are the laws of package dibs: L31 to L45.
var coreLaws = sorted(trustLaws)

var trustLaws []law
