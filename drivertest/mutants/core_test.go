package mutants_test

// coreMutants break package dibs.
var coreMutants []mutant
