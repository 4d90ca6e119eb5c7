// Package dispatch is the one pipeline of a call, whatever kind it is of and whichever front it came through.
//
// The order is fixed: resolve the address among what the turn's epoch admits (exposure and availability) -> revocation
// and current policy (authorization) -> pre-tool hooks, which may rewrite the arguments -> schema of the final arguments
// -> permission rules on them -> direct-write paths -> the ledger (durable, unless the call only reads) -> the gate ->
// the effect -> output check -> size limit -> post-tool hooks -> the ledger.
//
// Nothing has an effect before the gate, and the gate is the last thing before the effect: when a revocation was
// acknowledged, no call passes it any more. Every refusal is a value with code, reason and remedy.
//
// A pipeline runs on the goroutine of one call and blocks; it owns nothing and starts nothing.
package dispatch
