// Package registry is the actor that alone owns a tenant's current epoch and its revocations.
//
// It publishes: it resolves what the reconciler declared, what demand taught about servers and what operators revoked
// into a set, and when that differs from the current one gives it the next epoch number, keeps the number durable, puts
// the set into the gate and tells subscribers. Readers on the hot path read the gate; they never ask this actor.
//
// Order: a revocation is in force at the gate before anything else is done about it, and its acknowledgement comes after
// it is durable. An epoch number is durable before it is published, so that none is used twice, across restarts too.
// Publications happen one after the other; work that arrives meanwhile is folded into the next.
package registry
