// Package supervision decides when a part that failed is started again, and tells how every part is doing.
//
// It has two halves. Policy.Step is pure: given the history of a part and one more failure it says "restart after this
// wait" or "give up until then". Supervisor is the shell around it: a parent actor embeds one, hands it every message, and
// gets children that come back. Guardian is the parent that does nothing else.
//
// Rules:
//   - A failed child is stopped completely (its own children and effects too) before its successor is spawned. There is no
//     restart in place. The successor has a new Ref: ask the Supervisor for it, or follow Options.Changed.
//   - A budget bounds the restarts within any window. When it is used up the Supervisor gives up: it says so in the Health
//     of the child and in the log, and from then on tries once in a while, on a slower schedule of its own. A child that
//     then lives for a whole window has its budget back. So nothing is restarted in a hot loop, and nothing dies for ever.
//   - A child that stops without having been told to has failed, whether it panicked or stopped itself.
//   - Children of one Supervisor are independent: the end of one is nothing to the others.
//   - When the parent stops, all its children are told at the same time. Where one part must outlive another, make each a
//     root of the actorkit.System: Shutdown stops roots one by one, the last spawned first.
//
// The clock is the actor's Context; randomness for the jitter is passed in. LastError shows public text only.
package supervision
