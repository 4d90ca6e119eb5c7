// Package turn decides what one model turn may see and call.
//
// Gate is the dispatch gate: the current set and revocations, read without a mailbox between a revocation and the
// dispatch it must stop. Admit is the only point of admission for every kind: channel policy, then reach and
// revocation. Resolve turns the name and arguments a model sent into a Target among what was admitted. NewSurface
// chooses which admitted tools are loaded; Index finds the others. Render writes definitions for a provider, Bound the
// record of what a turn saw.
//
// Everything but Gate is a pure function over immutable values: an Admitted, a Surface and an Index may be shared by any
// number of goroutines, and an Admitted may be kept for every turn that binds the same set under the same policy.
// Nothing here calls, starts or lists anything. Whether a call of an admitted tool runs is decided again for each call,
// at the gate and by the permission engine.
//
// What is hidden from a caller (by channel policy, narrowing or the front it came through) is never named to it: not in
// errors, nearest names, catalogues, sections or deltas. What is revoked or blocked is named with its reason.
package turn
