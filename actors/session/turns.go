package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/expand"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/internal/wire"
)

// boundTurn is the open turn: what it is bound to from its first step to its last.
type boundTurn struct {
	id        string
	admission *dispatch.Admission
	offer     dispatch.Offer
	discovery *dispatch.Discovery
	format    turn.Format
	misread   []string // tools used although the reading did not ask for them
	crew      *crew    // nil: nobody works for it
	reply     actorkit.Replier
}

// turnBound is the outcome of binding a turn.
type turnBound struct {
	turn   *boundTurn
	begin  *sessionv1.BeginTurn // nil: an implicit turn
	prompt string
	plan   expand.Plan     // of the prompt
	asker  context.Context //nolint:containedctx // ends when nobody waits for the turn any more; nil: nobody gives up
	sliced bool

	started bool     // session-start has been delivered
	context []string // that hooks want the model to know

	err error
}

const maxPrompt = 1 << 20 // bytes

func (s *session) nextID(prefix string) string {
	s.opened++
	return fmt.Sprintf("%s%d.%d", prefix, s.head.Epoch, s.opened)
}

func (s *session) beginTurn(c *actorkit.Context, m *sessionv1.BeginTurn, by command) {
	if len(m.GetPrompt()) > maxPrompt {
		by.reply.Reply(vakerr.New(vakerr.TooLarge, "the prompt has %d bytes, at most %d are expanded", len(m.GetPrompt()), maxPrompt))
		return
	}
	id := s.nextID("t")
	life, err := s.life.Begin(id)
	if err != nil {
		by.reply.Reply(err)
		return
	}
	s.life, s.binding = life, true
	input, started, mom := s.surfaceInput(m), s.memory.started, s.moment(by.Asker, c, id, nil)
	s.expanding = c.Go(func(ctx context.Context) any {
		if s.lent == nil { // a worker never looks for what is new
			s.freshen(ctx)
		}
		b := s.bind(id, m, input)
		b.turn.reply, b.asker, b.started = by.reply, by.Asker, started
		if b.err == nil {
			b.welcome(ctx, mom)
		}
		return b
	})
}

// freshen makes what is on disk now the current epoch. When that fails, the last good set stays in force, and the report
// says why.
func (c *Config) freshen(ctx context.Context) {
	_, _ = actorkit.Ask[any](ctx, c.Reconciler.Ref(), protocol.Freshen{})
}

func (s *session) surfaceInput(m *sessionv1.BeginTurn) turn.SurfaceInput {
	in := turn.SurfaceInput{Slice: s.Slice, Loaded: s.memory.loaded}
	if r := m.GetReading(); r != nil {
		axes := turn.Axes{
			Act: r.GetAxes().GetAct(), Evidence: r.GetAxes().GetEvidence(), Modality: r.GetAxes().GetModality(), Clarity: r.GetAxes().GetClarity(),
		}
		domains, uncertain := axes.Required()
		in.Reading = &turn.Reading{
			Required:  append(capability.ParseDomains(r.GetDomains()...), domains...),
			Uncertain: r.GetUncertain() || uncertain, Cards: r.GetCards(),
		}
	}
	return in
}

// bind makes an explicit turn. It runs in an effect and touches nothing of the actor but what never changes.
func (s *session) bind(id string, m *sessionv1.BeginTurn, input turn.SurfaceInput) turnBound {
	b := turnBound{begin: m, turn: &boundTurn{id: id, format: turn.Format(m.GetFormat())}, prompt: m.GetPrompt()}
	if b.turn.format == "" {
		b.turn.format = turn.FormatMCP
	}
	view := s.Gate.View()
	if view.Policy == nil {
		b.err = notReady()
		return b
	}
	a := s.admission(view)
	b.turn.admission = a
	b.sliced = input.Slice && input.Reading != nil
	if !b.sliced && len(input.Loaded) == 0 && b.turn.format == turn.FormatMCP {
		b.turn.offer, b.err = a.Everything()
	} else {
		b.turn.offer, b.err = dispatch.NewOffer(a.Admitted, turn.NewSurface(a.Admitted, input), b.turn.format)
	}
	if b.err != nil {
		return b
	}
	b.turn.discovery = dispatch.NewDiscovery(b.turn.offer.Surface.Loaded, &s.searched)
	b.plan, b.err = expand.New(a.Bound(b.turn.discovery), b.prompt, expand.Facts{Session: string(s.id), Project: s.Pipeline.Workspace})
	if b.err == nil && b.plan.Pure() {
		b.prompt, b.err = b.plan.Join(nil)
	}
	return b
}

func notReady() error {
	return vakerr.New(vakerr.CapabilityUnavailable, "the workspace has not been read yet").WithRemedy("try again in a moment")
}

func (s *session) onBound(c *actorkit.Context, m turnBound) {
	s.binding, s.expanding = false, actorkit.Effect{}
	s.memory.started = s.memory.started || m.started
	if m.err != nil {
		s.life = s.life.Abandon()
		m.turn.reply.Reply(m.err)
		s.resume(c)
		return
	}
	s.bound = m.turn
	delta, bodies := s.turnBegan(m)
	if m.plan.Pure() {
		s.begin(c, m, delta, bodies)
		return
	}
	s.append(c, false, s.orFail(c), bodies...)
	s.expand(c, m, delta)
}

// begin answers the asker of a turn, of which the ledger says bodies.
func (s *session) begin(c *actorkit.Context, m turnBound, delta capability.Delta, bodies []ledger.Body) {
	if m.plan.ID != (capability.ID{}) {
		bodies = append(bodies, ledger.CommandExpanded{
			Turn: m.turn.id, Command: m.plan.ID, Digest: capability.ContentDigest([]byte(m.prompt)),
		})
	}
	s.answer(c, m.turn.reply, s.begun(m, delta), bodies...)
	m.turn.reply = actorkit.Replier{}
	s.resume(c)
}

// turnBegan is what the ledger says of the begin of a turn: the change since the last one, the interface where it is new,
// the turn itself. It returns the change, too.
func (s *session) turnBegan(m turnBound) (delta capability.Delta, bodies []ledger.Body) {
	a := m.turn.admission
	delta = s.delta(a)
	if s.memory.turns && s.memory.told != a.Epoch {
		bodies = append(bodies, ledger.EpochChanged{From: s.memory.told, To: a.Epoch, SetDigest: a.Digest, Delta: delta})
	}
	offer := m.turn.offer
	if _, stored := s.memory.interfaces[offer.InterfaceDigest]; !stored && len(offer.Interface) <= maxInterface {
		bodies = append(bodies, ledger.InterfaceStored{Digest: offer.InterfaceDigest, Interface: offer.Interface})
		if len(s.memory.interfaces) >= maxInterfaces {
			clear(s.memory.interfaces)
		}
		s.memory.interfaces[offer.InterfaceDigest] = struct{}{}
	}
	began := ledger.TurnBegan{
		Turn: m.turn.id, CapabilityEpoch: a.Epoch, SetDigest: a.Digest, Channel: s.caller.Channel,
		Interface: offer.InterfaceDigest, Implicit: m.begin == nil,
		Started: s.memory.started, Misreads: s.memory.misreads, Allowed: s.memory.allowances.Rules(),
	}
	if m.sliced {
		s.memory.loaded, began.Deferred = offer.Surface.Loaded, offer.Surface.Deferred
	}
	began.Loaded = s.memory.loaded
	bodies = append(bodies, began)
	s.memory.told, s.memory.turns = a.Epoch, true
	return delta, bodies
}

// Bounds of what a session keeps of interfaces: one above the first is known by its digest alone.
const (
	maxInterface  = 900 << 10 // bytes
	maxInterfaces = 32
)

// delta is what this caller may know of the change since its last turn. When that is not remembered any more, everything
// counts as updated.
func (s *session) delta(a *dispatch.Admission) capability.Delta {
	if !s.memory.turns {
		return capability.Delta{}
	}
	delta, known := a.View.History.Between(s.memory.told, a.Epoch)
	if !known {
		for c := range a.Set.All() {
			delta.Updated = append(delta.Updated, c.ID)
		}
	}
	return delta.Only(a.Shows)
}

func (s *session) begun(m turnBound, delta capability.Delta) *sessionv1.BeginTurnResult {
	a, offer := m.turn.admission, m.turn.offer
	notice := a.Standing()
	if text := turn.DeltaText(delta); text != "" {
		if notice != "" {
			notice += "\n\n"
		}
		notice += text
	}
	return &sessionv1.BeginTurnResult{
		TurnId: m.turn.id, Epoch: uint64(a.Epoch), SetDigest: a.Digest, ToolsJson: offer.Tools,
		Loaded: offer.Surface.Loaded, Deferred: offer.Surface.Deferred,
		PromptSection: dispatch.PromptSection(a.Admitted, offer.Surface), Notice: notice, Delta: wire.Delta(delta), Prompt: m.prompt,
		Invocation: wire.Invocation(m.plan.ID, m.plan.Invocation), Context: joined(m.context),
	}
}

func (s *session) endTurn(c *actorkit.Context, m *sessionv1.EndTurn, by command) {
	calls := s.life.Calls()
	life, err := s.life.End(m.GetTurnId())
	if err != nil {
		by.reply.Reply(err)
		return
	}
	s.life = life
	misread, ended, a := s.bound.misread, s.turnEnded(""), s.bound.admission
	s.unbind()
	s.cancelCalls(c, vakerr.New(vakerr.TurnEnded, "turn %s ended before the call", m.GetTurnId()), nil)
	end := stopping{reply: by.reply, result: &sessionv1.EndTurnResult{Calls: uint32(calls), Misread: misread}, ended: ended}
	if asksAbout(a, hook.Input{Event: hook.Stop}) {
		s.askAboutStop(c, s.moment(by.Asker, c, m.GetTurnId(), a), end)
		return
	}
	s.memory.stops = 0
	s.answer(c, end.reply, end.result, end.ended)
}

// turnEnded is what the ledger says of the end of the bound turn.
func (s *session) turnEnded(reason string) ledger.TurnEnded {
	return ledger.TurnEnded{Turn: s.bound.id, Reason: reason, Misread: s.bound.misread}
}

// promote loads what a search found for the rest of the session, renders it in the turn's form, and returns what the
// ledger says of it.
func (s *session) promote(names []string) (added []string, definitions json.RawMessage, bodies []ledger.Body) {
	b := s.bound
	if b == nil || len(names) == 0 {
		return nil, nil, nil
	}
	b.offer.Surface, added = b.offer.Surface.Promote(b.admission.Admitted, names...)
	if len(added) == 0 {
		return nil, nil, nil
	}
	b.discovery.Load(added...)
	// Where nothing was chosen yet everything stood before it, and stays there: later turns show the same in the same order.
	fresh := slices.DeleteFunc(slices.Clone(b.offer.Surface.Loaded), func(n string) bool { return slices.Contains(s.memory.loaded, n) })
	s.memory.loaded = append(slices.Clip(s.memory.loaded), fresh...)
	definitions, err := turn.Render(b.format, b.admission.Admitted, turn.Surface{Loaded: added})
	if err != nil {
		definitions = nil
	}
	return added, definitions, []ledger.Body{ledger.ToolsLoaded{Turn: b.id, Tools: fresh}}
}

// listTools answers what the session could call now, in an effect: the first answer of an epoch renders every tool.
func (s *session) listTools(c *actorkit.Context, m *sessionv1.ListTools, by command) {
	c.Go(func(context.Context) any {
		view := s.Gate.View()
		if view.Policy == nil {
			by.reply.Reply(notReady())
			return nil
		}
		a := s.admission(view)
		tools, digest, err := list(a, m)
		if err != nil {
			by.reply.Reply(err)
			return nil
		}
		by.reply.Reply(&sessionv1.ListToolsResult{ToolsJson: tools, Digest: digest, Epoch: uint64(a.Epoch)})
		return nil
	})
}

func list(a *dispatch.Admission, m *sessionv1.ListTools) (json.RawMessage, string, error) {
	switch {
	case m.GetServer() != "":
		return listServer(a, m.GetServer())
	case m.GetSurface() == "" || m.GetSurface() == "full":
		offer, err := a.Listing()
		return offer.Tools, offer.Digest, err
	case m.GetSurface() == "search":
		offer, err := a.Everything()
		return offer.Tools, offer.Digest, err
	}
	return nil, "", vakerr.New(vakerr.InvalidRequest, "unknown surface %.32q", m.GetSurface()).
		WithRemedy("the surfaces are full and search")
}

func listServer(a *dispatch.Admission, server string) (json.RawMessage, string, error) {
	if _, ok := a.Server(server); !ok {
		return nil, "", vakerr.New(vakerr.UnknownServer, "there is no server %.64q", server)
	}
	definitions := []json.RawMessage{}
	for _, t := range a.ServerTools(server) {
		definitions = append(definitions, t.Definition)
	}
	tools, err := json.Marshal(definitions)
	return tools, capability.ContentDigest(tools), err
}
