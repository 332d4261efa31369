// Package model is a model checker for the protocol of package quorum. Clients, nodes
// and a network that loses, doubles and delays whatever it likes are one explicit
// state (model.go); its tests visit every state that can be reached (check_test.go),
// and a great many at random (walk_test.go). They find the published counterexamples
// for the protocol that is usually proposed, and none for this one. [Schedule] gives
// such a random run to others: redislock's tests have real servers do it.
package model
