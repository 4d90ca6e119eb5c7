// Package hook is the contract of lifecycle hooks: which moments there are and what the events of other programs mean, which
// hooks an event concerns, what they are told, how what they answered is read, and what several answers come to.
//
// It decides; it runs nothing (internal/hookrun does) and has no clock. Its rules:
//   - hooks of the own dialect run one after another in the order given, and the first block wins: no later hook runs; those
//     of other programs run side by side where their program does so;
//   - the strictest opinion counts: block, then ask, then approve. Silence is no opinion, and an approval is none either: a
//     hook can only take away, it never grants what the permission rules refuse;
//   - a hook that failed (did not start, timed out, answered what cannot be read) blocks if it is fail-closed, and is passed
//     over and reported if it is fail-open;
//   - a rewrite of the input is what the next hook sees, and the schema and rules are checked on the last one.
package hook
