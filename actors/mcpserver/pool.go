package mcpserver

import (
	"cmp"
	"context"
	"slices"
	"time"

	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"
	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/backoff"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Config is what a pool is made of.
type Config struct {
	Tenant    string
	Gate      *turn.Gate
	Registry  *protocol.Address
	Connector Connector
	Backoff   backoff.Policy // after failed starts; zero: lifecycle.DefaultBackoff
}

// maxConnections bounds the connections of a tenant.
const maxConnections = 1024

// Props describes the pool actor.
func Props(c Config) actorkit.Props {
	return actorkit.Props{
		Kind: "pool", Mailbox: 1 << 14, Supervisor: nil,
		New: func() actorkit.Actor {
			return &pool{
				Config: c, servers: make(map[key]*entry), retired: make(map[string]*status),
				definitions: make(map[*capability.Server]string),
			}
		},
	}
}

// key names one connection.
type key struct {
	server     string
	definition string
	session    string // empty: shared
}

// name is the key as an actor's name.
func (k key) name() string {
	if k.session == "" {
		return k.server
	}
	return k.server + "@" + k.session
}

type pool struct {
	Config
	servers map[key]*entry
	retired map[string]*status // the last words of declared servers whose actor is gone, by server

	definitions map[*capability.Server]string // see definition
}

type entry struct {
	ref    actorkit.Ref
	status *board
	queue  []demand // came while the actor was ending; the next one gets them
}

// Receive implements actorkit.Actor.
func (p *pool) Receive(c *actorkit.Context, msg any) {
	switch m := msg.(type) {
	case *protocol.Acquire:
		p.acquire(c, demand{m, c.Replier(), c.Self()})
	case demand: // came back from an actor that ended
		p.acquire(c, m)
	case *registryv1.EpochPublished:
		p.retire()
	case *protocol.Revoked:
		p.revoked(m)
	case actorkit.ChildStopped:
		p.ended(c, m)
	case *poolv1.ListServers:
		c.Reply(p.list())
	case *poolv1.ProbeServer:
		p.probe(c, m, c.Replier())
	case *poolv1.StopServer:
		p.stop(c, m)
	case *poolv1.GetServerLogs:
		p.logs(c, m)
	}
}

func (p *pool) acquire(c *actorkit.Context, m demand) {
	if why := m.Config.Unready; why != "" {
		m.reply.Reply(vakerr.New(vakerr.ServerUnready, "server %.64q cannot be started as it is declared: %s", m.Server, why).WithRemedy("%s", m.Config.Remedy))
		return
	}
	k := key{server: m.Server, definition: p.definition(m.Config)}
	if m.Config.Isolation == capability.IsolationSession {
		k.session = m.Session
	}
	e := p.servers[k]
	if e == nil {
		if len(p.servers) >= maxConnections {
			m.reply.Reply(vakerr.New(vakerr.TooMany, "%d connections to servers are open already", maxConnections).
				WithRemedy("set isolation = \"shared\" where a server allows it, or a shorter idle_ttl"))
			return
		}
		status := &board{}
		ref, err := c.Spawn(k.name(), serverProps(p.Config, k, m.Config, status, c.Self()))
		if err != nil {
			m.reply.Reply(err)
			return
		}
		e = &entry{ref: ref, status: status}
		p.servers[k] = e
	}
	switch err := e.ref.Tell(m); {
	case vakerr.CodeOf(err) == vakerr.ActorStopped: // it is ending, and we have not heard of it yet
		e.queue = append(e.queue, m)
	case err != nil:
		m.reply.Reply(err)
	}
}

// definition is protocol.ServerDefinition, computed once for each configuration of the current epoch.
func (p *pool) definition(s *capability.Server) string {
	d, known := p.definitions[s]
	if !known {
		d = protocol.ServerDefinition(s)
		p.definitions[s] = d
	}
	return d
}

// retire lets go of connections whose server is not declared any more, differently, or held: what runs may finish.
func (p *pool) retire() {
	clear(p.definitions)
	set := p.Gate.View().Snapshot.Set
	for k, e := range p.servers {
		c, ok := set.Get(capability.ID{Kind: capability.KindMCP, Name: k.server})
		if !ok || c.Hold != nil || p.definition(c.Config.(*capability.Server)) != k.definition {
			_ = e.ref.Tell(retire{})
		}
	}
	for name := range p.retired {
		if _, err := p.declared(name); err != nil {
			delete(p.retired, name)
		}
	}
}

// revoked closes the connections of a revoked server once their calls have ended. Those that are to be cancelled are
// cancelled by their sessions, which can say why; a connection that was torn down under them could not.
func (p *pool) revoked(m *protocol.Revoked) {
	id, err := capability.ParseID(m.GetId())
	if err != nil || id.Kind != capability.KindMCP {
		return
	}
	for k, e := range p.servers {
		if k.server == id.Name {
			_ = e.ref.Tell(halt{reason: "it was revoked", drain: true})
		}
	}
}

func (p *pool) ended(c *actorkit.Context, m actorkit.ChildStopped) {
	for k, e := range p.servers {
		if e.ref != m.Child {
			continue
		}
		delete(p.servers, k)
		if _, err := p.declared(k.server); err == nil {
			if s := e.status.load(); s != nil {
				s.state = "cold"
				if before := p.retired[k.server]; before != nil {
					s.starts += before.starts
				}
				p.retired[k.server] = s
			}
		}
		for _, d := range e.queue {
			p.acquire(c, d)
		}
		return
	}
}

// list names every declared server with its state. It starts none.
func (p *pool) list() *poolv1.ListServersResult {
	result := &poolv1.ListServersResult{}
	for c := range p.Gate.View().Snapshot.Set.OfKind(capability.KindMCP) {
		result.Servers = append(result.Servers, p.describe(c))
	}
	return result
}

func (p *pool) describe(c *capability.Capability) *poolv1.Server {
	config := c.Config.(*capability.Server)
	d := &poolv1.Server{Name: c.ID.Name, State: "cold", Tools: -1, Target: target(config)}
	if o := config.Observation; o != nil {
		d.Failure = o.Failure
		if o.Catalog != nil {
			d.Tools = int32(len(o.Catalog))
		}
	}
	if s := p.retired[c.ID.Name]; s != nil {
		d.Starts = s.starts
	}
	open := p.of(c.ID.Name)
	for i, e := range open {
		s := e.status.load()
		if s == nil {
			continue
		}
		d.InFlight += uint32(s.inFlight)
		d.Starts += s.starts
		if i == 0 {
			d.State, d.Pid = s.state, int64(s.pid)
			if !s.started.IsZero() {
				d.StartedMs = s.started.UnixMilli()
			}
			if wait := time.Until(s.nextAttempt); wait > 0 {
				d.RetryAfterMs = wait.Milliseconds()
			}
		} else {
			d.Connections++
		}
	}
	return d
}

// of lists the connections of a server, the shared one first.
func (p *pool) of(server string) []*entry {
	var keys []key
	for k := range p.servers {
		if k.server == server {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.definition, b.definition))
	})
	all := make([]*entry, len(keys))
	for i, k := range keys {
		all[i] = p.servers[k]
	}
	return all
}

func (p *pool) declared(name string) (*capability.Capability, error) {
	c, ok := p.Gate.View().Snapshot.Set.Get(capability.ID{Kind: capability.KindMCP, Name: name})
	if !ok {
		return nil, vakerr.New(vakerr.UnknownServer, "there is no server %.64q", name).
			WithRemedy("see: vak-actors servers list")
	}
	return c, nil
}

// settleTime bounds how long the answer to a probe waits for the registry.
const settleTime = 5 * time.Second

// settle waits until what a demand taught is published. Where that takes too long, the answer goes out without it: what
// was learned is published later.
func (p *pool) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	_, _ = actorkit.Ask[protocol.Settled](ctx, p.Registry.Ref(), protocol.Settle{})
}

// probe is demand by an operator: it uses the same way as a call, and starts nothing that is held or revoked. Its answer
// comes when what it taught is published, so that whoever asks for the report next finds it there.
func (p *pool) probe(c *actorkit.Context, m *poolv1.ProbeServer, reply actorkit.Replier) {
	declared, err := p.declared(m.GetName())
	if err != nil {
		reply.Reply(err)
		return
	}
	view := p.Gate.View()
	if reason, revoked := view.Revoked[declared.ID]; revoked {
		reply.Reply(vakerr.New(vakerr.CapabilityRevoked, "%s was revoked: %s", declared.ID, reason).
			WithRemedy("restore it first: vak-actors restore %s", declared.ID))
		return
	}
	if held := declared.Hold; held != nil {
		reply.Reply(vakerr.New(vakerr.CapabilityHeld, "%s is held: %s", declared.ID, held.Reason).WithRemedy("%s", held.Remedy))
		return
	}
	self := c.Self()
	config := declared.Config.(*capability.Server)
	c.Go(func(ctx context.Context) any {
		lease, err := actorkit.Ask[*protocol.Lease](ctx, self, &protocol.Acquire{
			Server: m.GetName(), Config: config, Session: "probe", List: true,
		})
		p.settle(ctx)
		if err != nil {
			reply.Reply(err)
			return nil
		}
		defer lease.Release(true)
		result := &poolv1.ProbeServerResult{}
		for _, t := range lease.Observation.Catalog {
			result.Tools = append(result.Tools, t.Name)
		}
		listed, err := actorkit.Ask[*poolv1.ListServersResult](ctx, self, &poolv1.ListServers{})
		if err == nil {
			for _, s := range listed.GetServers() {
				if s.GetName() == m.GetName() {
					result.Server = s
				}
			}
		}
		if conn, ok := lease.Connection.(Noted); ok {
			result.Notes = conn.Notes()
		}
		reply.Reply(result)
		return nil
	})
}

func (p *pool) stop(c *actorkit.Context, m *poolv1.StopServer) {
	if _, err := p.declared(m.GetName()); err != nil {
		c.Reply(err)
		return
	}
	running := false
	for _, e := range p.of(m.GetName()) {
		s := e.status.load()
		running = running || s != nil && s.pid+boolInt(s.state == "ready") > 0
		_ = e.ref.Tell(halt{reason: "an operator stopped it"})
	}
	c.Reply(&poolv1.StopServerResult{WasRunning: running})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (p *pool) logs(c *actorkit.Context, m *poolv1.GetServerLogs) {
	if _, err := p.declared(m.GetName()); err != nil {
		c.Reply(err)
		return
	}
	result := &poolv1.GetServerLogsResult{}
	last := p.retired[m.GetName()]
	for _, e := range p.of(m.GetName()) {
		if s := e.status.load(); s != nil && (s.stderr != nil || last == nil) {
			last = s
			break
		}
	}
	if last != nil && last.stderr != nil {
		result.Stderr, result.Junk = last.stderr()
	}
	c.Reply(result)
}
