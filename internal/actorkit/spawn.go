package actorkit

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// newCell makes an actor that is not running yet. New runs in the goroutine of the spawner: its panic is the spawner's
// error, not its death (H14).
func (s *System) newCell(parent, name string, p Props) (c *cell, err error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	defer func() {
		if v := recover(); v != nil {
			reason := newPanicError(v)
			s.logger.Error("constructor of an actor failed", slog.String("parent", parent), slog.String("name", name),
				slog.String("kind", p.Kind), slog.String("reason", PublicReason(v)), slog.String("stack", string(reason.Stack)))
			c, err = nil, vakerr.New(vakerr.Internal, "the constructor of actor %q failed", name).WithCause(reason)
		}
	}()
	user := p.New()
	if user == nil {
		return nil, vakerr.New(vakerr.Internal, "the constructor of actor %q made nothing", name)
	}
	c = &cell{
		user: user, sys: s, kind: p.Kind, strategy: p.Supervisor,
		self: newAddress(parent, name, s.incarnations.Add(1)),
	}
	c.box = mailbox{owner: c, bound: p.Mailbox, busy: true}
	if c.box.bound <= 0 {
		c.box.bound = DefaultMailbox
	}
	c.ctx.c = c
	c.self.cell.Store(c)
	return c, nil
}

// mould is a set of protoactor Props that makes one cell at a time. Props keep no data of an actor, so all actors that
// were spawned with one mould share it for life; without that each would carry some 300 bytes of Props.
type mould struct {
	next  *cell // what the producers hand out; set only within spawn
	props *actor.Props
}

func newMould() any {
	m := &mould{}
	m.props = actor.PropsFromProducer(
		func() actor.Actor { return m.next },
		actor.WithMailbox(func() actor.Mailbox { return &m.next.box }),
	)
	return m
}

// spawn starts c below parent. Protoactor registers it under its path, and posts Started before it lets a worker in.
func (s *System) spawn(c *cell, parent actor.SpawnerContext) (*actor.PID, error) {
	m := s.moulds.Get().(*mould)
	m.next = c
	s.live.Add(1)
	pid, err := actor.DefaultSpawner(s.proto, c.self.path, m.props, parent)
	m.next = nil
	s.moulds.Put(m)
	if err != nil { // a name is never used twice, so this cannot be; the actor has not started
		s.live.Add(-1)
		c.self.cell.Store(nil)
		return nil, vakerr.New(vakerr.Internal, "cannot register actor %q", c.ref()).WithCause(err)
	}
	return pid, nil
}
