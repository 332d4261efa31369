// Package quorum is the protocol by which a lock on several independent nodes
// has fencing tokens that grow: what one node does with a request (node.go), and
// what a client makes of the nodes' answers (ballot.go). The store that speaks it
// to real servers is redlock.go in package redislock, whose scripts do in Lua
// what [Node] does here; docs/redlock.md explains it, with the proof.
//
// Its tests are package model: a model checker, which finds the published
// counterexamples for the protocol that is usually proposed, and none for this one.
package quorum
