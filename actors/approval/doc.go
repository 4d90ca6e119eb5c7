// Package approval is the approver of a tenant: the actor behind which calls wait for a person's answer.
//
// It is an actor of the tenant and not a part of each session, because a person answers for all sessions in one place: one
// mailbox orders answers, deadlines, revocations and calls that are given up, so that each question ends exactly once.
// What counts as an answer is decided by internal/approval; the actor owns the time, the askers and those who wait for
// news.
//
// A call asks from its own goroutine, through Caller; no Receive waits for a person. Questions live in memory only: when
// the daemon ends they end with it, and nothing that waited has run.
package approval
