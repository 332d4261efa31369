// Package mutants holds no code: its test breaks the reference store and the
// core on purpose, law by law, and fails if the law's test does not notice. A
// mutant that survives is a hole in the suite.
//
// The table is checked by every run of the tests; the mutants themselves run
// with
//
//	DIBS_MUTANTS=all go test -v ./drivertest/mutants
//
// where instead of all a regular expression can choose among them by law and
// description ("^L31 ", "fence").
package mutants
