// Package childproc owns every operating-system process this module starts: MCP servers and hooks. Nothing else here
// imports os/exec.
//
// What it decides: how a child is started, watched, stopped and swept up. What it does not: what is said over the pipes,
// whether a child is started again, and which environment it deserves beyond the one given.
//
// Invariants
//   - A child is the leader of its own process group. Every signal goes to the group, and what is left of the group when the
//     leader has exited is killed at once. A descendant that left the group is out of scope.
//   - A child dies with the daemon, even on kill -9 (parent-death signal). The kernel ties that signal to the thread which
//     forked, so all forks happen on one locked thread that lives exactly as long as there are children.
//   - A child sees the environment of its Spec and nothing else.
//   - Exit is noticed by one goroutine per child, which also reaps it: there are no zombies, and no signal is ever sent to a
//     pid that was reaped. Done is closed after the group was killed and stderr was drained.
//   - Stderr is read until the end and kept in a ring of fixed size: a child never blocks on it and it costs no memory.
//
// A group record on disk (Spec.GroupDir) lets the next daemon find and kill grandchildren of one that was killed; see
// ReapLeftovers.
//
// Ownership: whoever calls Start owns the Process, closes Stdin and Stdout and must call Stop or Kill, unless Done is
// closed already. Errors are *vakerr.Error; those of a start carry vakerr.ProcessStartFailed.
package childproc
