package actorkit

import "github.com/asynkron/protoactor-go/actor"

// What tests need to play the outside of the kit: a sender that comes through protoactor.

// Proto is the protoactor system below s.
func (s *System) Proto() *actor.ActorSystem { return s.proto }

// PIDOf is the protoactor address of r, as a remote sender would hold it.
func PIDOf(s *System, r Ref) *actor.PID { return s.proto.NewLocalPID(r.String()) }

// Busy reports whether a worker is at r's mailbox.
func Busy(r Ref) bool {
	m := &r.a.cell.Load().box
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.busy
}

// Workers is the number of parked workers and whether the pool is closed.
func (s *System) Workers() (parked int, closed bool) {
	s.workers.mu.Lock()
	defer s.workers.mu.Unlock()
	return len(s.workers.idle), s.workers.closed
}

// CloseWorkers ends the goroutines a failed Shutdown left.
func CloseWorkers(s *System) { s.workers.close() }

// OpenAsks is the number of asks r captured and has not answered.
func OpenAsks(r Ref) int {
	d := &r.a.cell.Load().own().debts
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}
