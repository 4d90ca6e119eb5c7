package session

import (
	"context"
	"slices"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// DirectoryProps describes one directory of a tenant's sessions.
func DirectoryProps(c Config) actorkit.Props {
	if c.IdleTTL <= 0 {
		c.IdleTTL = DefaultIdleTTL
	}
	return actorkit.Props{
		Kind: "sessions", Mailbox: 1 << 16,
		New: func() actorkit.Actor { return &directory{Config: &c, live: make(map[string]*resident)} },
	}
}

// directory is the only one to spawn, find and passivate its sessions.
type directory struct {
	*Config
	live    map[string]*resident
	roomAt  time.Time // when makeRoom looked last
	parting int       // residents that were asked to passivate and have not answered
	more    bool      // of those that should be asked some were not, as maxParting were
}

// maxParting bounds how many sessions of a directory passivate at a time. Each writes an entry, and the queue of the ledger
// is everybody's: a hundred thousand sessions that fall idle at once must not fill it.
const maxParting = 256

// resident is one session in memory.
type resident struct {
	ref     actorkit.Ref
	used    time.Time // last command
	leaving bool      // it was asked to passivate and has not answered, or it is ending
	parting bool      // it counts in the directory's parting
	queue   []command // arrived while leaving
}

type (
	sweep struct{}
	sleep struct{ unused time.Duration } // to a session: passivate if nothing is open
	awake struct{ id string }            // from a session: something is open, or was asked meanwhile
)

// sessionMessage is every command that names a session.
type sessionMessage interface{ GetSessionId() string }

// Receive implements actorkit.Actor.
func (d *directory) Receive(c *actorkit.Context, msg any) {
	switch m := msg.(type) {
	case actorkit.Started, sweep:
		d.sweep(c)
	case actorkit.ChildStopped:
		d.ended(c, m)
	case awake:
		d.stays(c, m.id)
	case lend:
		m.reply = c.Replier()
		d.toParent(m.parent, m, m.Undelivered)
	case dismissed:
		d.toParent(m.parent, m, func(error) {})
	case *protocol.Revoked:
		d.tellAll(m)
	case *protocol.PolicyChanged:
		if m.Stricter {
			d.tellAll(m)
		}
	case Command:
		d.command(c, command{m, c.Replier(), c.Self()})
	case command: // came back from a session that ended
		d.command(c, m)
	}
}

func (d *directory) tellAll(msg any) {
	for _, r := range d.live {
		_ = r.ref.Tell(msg)
	}
}

// toParent hands over what a worker tells its parent. A parent that is not in memory has no open turn, and is not revived.
func (d *directory) toParent(id string, m any, gone func(error)) {
	r := d.live[id]
	if r == nil {
		gone(nil)
		return
	}
	if err := r.ref.Tell(m); err != nil {
		gone(err)
	}
}

func (d *directory) command(c *actorkit.Context, m command) {
	switch msg := m.Message.(type) {
	case *sessionv1.ListSessions:
		d.list(c, msg, m.reply)
	case *sessionv1.GetSession:
		d.describe(c, msg.GetSessionId(), m)
	case sessionMessage:
		d.route(c, msg.GetSessionId(), m)
	default:
		m.reply.Reply(vakerr.New(vakerr.InvalidRequest, "sessions do not handle %T", msg))
	}
}

// route hands a command to its session, reviving it where it sleeps.
func (d *directory) route(c *actorkit.Context, id string, m command) {
	if err := ledger.ValidateSessionID(ledger.SessionID(id)); err != nil {
		m.reply.Reply(err)
		return
	}
	r := d.live[id]
	if r == nil {
		if r = d.spawn(c, id, m); r == nil {
			return
		}
	}
	r.used = c.Now()
	if r.leaving {
		if len(r.queue) >= maxWaiting {
			m.reply.Reply(tooManyWaiting(id))
			return
		}
		r.queue = append(r.queue, m)
		return
	}
	switch err := r.ref.Tell(m); {
	case vakerr.CodeOf(err) == vakerr.ActorStopped: // it is ending, and we have not heard of it yet
		r.leaving, r.queue = true, append(r.queue, m)
	case err != nil:
		m.reply.Reply(err)
	}
	d.makeRoom(c)
}

func (d *directory) spawn(c *actorkit.Context, id string, m command) *resident {
	ref, err := c.Spawn(id, sessionProps(d.Config, c.Self(), id))
	if err != nil {
		m.reply.Reply(err)
		return nil
	}
	r := &resident{ref: ref}
	d.live[id] = r
	d.Residents.Store(id, struct{}{})
	return r
}

// ended forgets a session that left memory, and revives it at once when somebody asked for it meanwhile.
func (d *directory) ended(c *actorkit.Context, m actorkit.ChildStopped) {
	r := d.live[m.Name]
	if r == nil || r.ref != m.Child {
		return
	}
	delete(d.live, m.Name)
	d.Residents.Delete(m.Name)
	d.parted(c, r)
	for _, waiting := range r.queue {
		d.route(c, m.Name, waiting)
	}
}

func (d *directory) stays(c *actorkit.Context, id string) {
	r := d.live[id]
	if r == nil || !r.leaving {
		return
	}
	r.leaving = false
	d.parted(c, r)
	queue := r.queue
	r.queue = nil
	for _, m := range queue {
		if err := r.ref.Tell(m); err != nil {
			m.reply.Reply(err)
		}
	}
}

// sweep asks sessions that nobody used for a while to leave. It runs four times per idle time.
func (d *directory) sweep(c *actorkit.Context) {
	d.passivateUnused(c)
	d.makeRoom(c)
	c.After(d.IdleTTL/4, sweep{})
}

func (d *directory) passivateUnused(c *actorkit.Context) {
	now := c.Now()
	for _, r := range d.live {
		if unused := now.Sub(r.used); !r.leaving && unused > d.IdleTTL && !d.passivate(r, unused) {
			return
		}
	}
}

// roomPause lies between two looks for sessions to passivate: where everything in memory is in use, looking is in vain.
const roomPause = 100 * time.Millisecond

// makeRoom asks the longest unused sessions to leave when there are more than MaxLive. Those with something open stay, so
// the bound gives way to sessions in use and to nothing else.
func (d *directory) makeRoom(c *actorkit.Context) {
	if d.MaxLive <= 0 || len(d.live) <= d.MaxLive || c.Now().Sub(d.roomAt) < roomPause {
		return
	}
	d.roomAt = c.Now()
	staying := make([]*resident, 0, len(d.live))
	for _, r := range d.live {
		if !r.leaving {
			staying = append(staying, r)
		}
	}
	slices.SortFunc(staying, func(a, b *resident) int { return a.used.Compare(b.used) })
	for _, r := range staying[:max(0, len(staying)-d.MaxLive)] {
		if !d.passivate(r, d.roomAt.Sub(r.used)) {
			return
		}
	}
}

// passivate asks a session to leave; it answers with awake, or ends. It returns false when enough of them are leaving: the
// others are asked when those have answered.
func (d *directory) passivate(r *resident, unused time.Duration) bool {
	if d.parting >= maxParting {
		d.more = true
		return false
	}
	if r.ref.Tell(sleep{unused}) == nil {
		r.leaving, r.parting = true, true
		d.parting++
	}
	return true
}

// parted notes the answer of a session that was asked to leave, and asks more of them when it was the last.
func (d *directory) parted(c *actorkit.Context, r *resident) {
	if !r.parting {
		return
	}
	r.parting = false
	d.parting--
	if d.more && d.parting == 0 {
		d.more = false
		d.passivateUnused(c)
	}
}

// describe answers from memory where the session is there, else from the store; asking revives nothing.
func (d *directory) describe(c *actorkit.Context, id string, m command) {
	if r := d.live[id]; r != nil && !r.leaving {
		switch err := r.ref.Tell(m); {
		case err == nil:
			return
		case vakerr.CodeOf(err) != vakerr.ActorStopped: // else it has ended, and we have not heard of it yet
			m.reply.Reply(err)
			return
		}
	}
	c.Go(func(ctx context.Context) any {
		info, err := d.Ledger.Session(ctx, d.Tenant, ledger.SessionID(id))
		if err != nil {
			m.reply.Reply(err)
			return nil
		}
		m.reply.Reply(&sessionv1.GetSessionResult{Session: describe(info)})
		return nil
	})
}

const defaultPage = 100

func (d *directory) list(c *actorkit.Context, m *sessionv1.ListSessions, reply actorkit.Replier) {
	page := ledger.Page{After: ledger.SessionID(m.GetAfter()), Limit: int(m.GetLimit())}
	if page.Limit == 0 {
		page.Limit = defaultPage
	}
	c.Go(func(ctx context.Context) any {
		infos, err := d.Ledger.Sessions(ctx, d.Tenant, page)
		if err != nil {
			reply.Reply(err)
			return nil
		}
		result := &sessionv1.ListSessionsResult{}
		for _, info := range infos {
			s := describe(info)
			if _, here := d.Residents.Load(s.GetSessionId()); here && info.State == ledger.StateOpen {
				s.State = "live"
			}
			result.Sessions = append(result.Sessions, s)
		}
		if len(infos) == ledger.Limit(page.Limit, ledger.MaxPage) {
			result.Next = string(infos[len(infos)-1].ID)
		}
		reply.Reply(result)
		return nil
	})
}

func tooManyWaiting(id string) error {
	return vakerr.New(vakerr.QueueFull, "%d messages wait for session %s already", maxWaiting, id).
		WithRemedy("wait for earlier answers before asking more")
}
