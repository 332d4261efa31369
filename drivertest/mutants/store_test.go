package mutants_test

// storeMutants break memlock.
var storeMutants []mutant
