// Package mutants holds no code: its test breaks the reference store and the
// core on purpose, law by law, and fails if the law's test does not notice. A
// mutant that survives is a hole in the suite.
//
// The table is checked by every run of the tests; the mutants themselves run
// with
//
//	go test -v -run TestMutants ./drivertest/mutants
//
// where DIBS_MUTANTS can choose among them, by a regular expression for law and
// description ("^L31 ", "fence").
package mutants
