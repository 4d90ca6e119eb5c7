// Package actorkit is the actor layer of this module and the only importer of protoactor-go's actor package.
//
// What it decides: how messages queue (lanes and bounds), who runs an actor (pooled workers), in which order an actor and
// what it owns start and stop, and what becomes of a panic. What it does not decide: when a failed child comes back, that
// is package supervision; what any message means.
//
// # Life of an actor
//
//	Spawn -> Started -> messages ... -> Stopping -> (children, effects and timers end) -> Stopped
//
// Invariants:
//   - Receive runs on one goroutine at a time and never concurrently with itself. It must not block: long work goes to
//     Context.Go, waiting to Context.After.
//   - Started is the first message. After Stopping only Stopped follows; what was queued is rejected, so asks fail at once.
//   - Stopped comes when every child has stopped and every effect has returned. Close there what those used.
//   - A parent outlives its children, and hears ChildStopped after each of them has ended completely.
//   - A panic in Receive costs the message that was handled and, unless the parent's Strategy resumes it, the actor; no
//     other actor. A panic in Stopping or Stopped costs nothing but a log record.
//   - There is no restart in place: a failed child is stopped and a new one spawned, under a new path.
//   - A Ref holds no part of a dead actor alive but its name.
//
// # Order
//
// Messages from one sender to one actor in one lane arrive in order. Lanes: the kit's own (lifecycle) before Control
// messages before the rest. The lane is chosen by the message itself, also when it travels inside an ask, a timer or a
// protoactor envelope. The last lane is bounded; a full one rejects with queue_full and never makes a sender wait. Results
// of effects and due timers are an actor's own doing and never rejected.
//
// # Errors
//
// Errors of this package are *vakerr.Error: actor_stopped (the target is gone, or went before it answered), queue_full,
// shutting_down, deadline_exceeded and canceled (the asker's context), invalid_request (a bad name or a nil message),
// internal_error (a panic, an answer of the wrong type, no answer at all).
//
// # What protoactor does, and what is not offered
//
// Protoactor keeps the process registry and carries the system messages (Started, Stop, Failure, Terminated) between
// actors. Its hazards met by this design have a test named after their number, TestH1 and so on. Those that are avoided
// because the feature is not offered at all:
//
//	H3  restart in place, which can resurrect a stopping actor: actors are stopped and spawned anew (a stray Restart is dropped)
//	H9  futures, of which only one waiter wakes: Ask has its own reply channel
//	H10 receive timeouts, whose timer races with the actor: Context.After
//	H17 stash, which replays backwards: keep a slice
//	H19 event stream fan-out, where a handler's panic hits senders: the stream has no subscriber
//	H22 the plugin, router and stream packages, which leak goroutines: never imported
//
// Also not offered: bounded, dropping and priority mailboxes, protoactor's backoff strategy and metrics, middleware,
// watching of actors other than one's children.
package actorkit
