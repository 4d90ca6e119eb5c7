// Package lifecycle holds the state machines of what lives long: the server behind the pool and the session.
//
// A machine is a value. Step takes an event and the time and returns the next value with the effects its owner has to
// carry out, in order. Nothing here has a clock, a goroutine, randomness or I/O; time and chance arrive as arguments,
// and Wake says when the owner must step with a Tick. A value that was stepped from is not changed and may be kept.
//
// Server: only demand starts anything. A failure is a reason and an observation, never a name or a refusal that outlives
// its backoff. Connections carry a generation, so that what an old one says late is not taken for the present.
//
// Session: a turn binds the epoch that was current when it began. A turn is explicit (BeginTurn to EndTurn) or implicit:
// the burst of calls in flight together, which ends with its last call.
package lifecycle
