// Package session is the actors of a tenant's sessions.
//
// A directory actor alone spawns, finds, passivates and revives sessions; there are several, and the hash of a session's
// id says which one is responsible. A session actor owns one session: its turns, its place in the ledger, what it was
// told. A call actor owns one dispatch in flight; hooks and effects run there, never in the session's own Receive.
//
// A session is written by one activation at a time: the store fences every other. Whatever goes wrong with the ledger
// ends the activation; the next message makes a new one, which reads the ledger first. So a session keeps its id and
// history through passivation, restarts of the daemon and failures of the actor.
//
// Order: what a call did before its effect is in the ledger before the effect; entries of one session are appended in the
// order in which their causes reached the actor; a turn's entries follow its turn_began.
package session
