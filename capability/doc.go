// Package capability is the vocabulary of this module: what an agent can use, how it is named, what state it is in, and
// how a whole set of it is published.
//
// A capability has an identity (kind:name), an origin, a declaration, a resolution and a standing. Readers declare; a
// Set resolves all declarations against the revocations in force, in one deterministic order with one digest; a
// Snapshot is a Set under an epoch number. All of these are values that are never changed after they were built, so
// they may be shared by any number of goroutines and sent as messages.
//
// The package decides nothing about policy (who may use what), turns (what is loaded) or time. It starts no goroutine
// and does no I/O.
package capability
