package supervision

import (
	"cmp"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Options configures a Supervisor. The zero value works.
type Options struct {
	Policy Policy
	Random func() float64 // in [0,1), for the jitter; default: math/rand/v2

	// Changed is called after every change of a child's health, within the Receive of the owner. ref is zero unless the
	// child runs. It must not call back into the Supervisor.
	Changed func(c *actorkit.Context, h Health, ref actorkit.Ref)
}

// Supervisor keeps named children of one actor running. It belongs to that actor: every method is called within its
// Receive, which must offer each message to Handle first. The owner's Props.Supervisor must be nil, so that children that
// fail are stopped.
type Supervisor struct {
	options  Options
	children map[string]*child
}

// child is a name and the incarnations that come and go under it.
type child struct {
	Health
	props     actorkit.Props
	ref       actorkit.Ref // of the incarnation that runs; zero while there is none
	startedAt time.Time
	history   History
}

// due is the message of a child's timer.
type due struct {
	of    *Supervisor
	child *child
}

// errEndedItself is the failure of a child that stopped without being told to and without a panic.
var errEndedItself = vakerr.New(vakerr.ActorStopped, "it stopped by itself")

// New makes a Supervisor without children.
func New(o Options) *Supervisor {
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return &Supervisor{options: o, children: make(map[string]*child)}
}

// Add starts a child and keeps it running. A child that cannot be started now counts as failed and is tried again; only a
// name that cannot be, or is in use already, is an error (invalid_request).
func (s *Supervisor) Add(c *actorkit.Context, name string, p actorkit.Props) error {
	if _, used := s.children[name]; used {
		return vakerr.New(vakerr.InvalidRequest, "%q already has a supervised %q", c.Self(), name)
	}
	fresh := &child{Health: Health{Name: name, Kind: p.Kind}, props: p}
	s.children[name] = fresh
	if err := s.start(c, fresh); vakerr.CodeOf(err) == vakerr.InvalidRequest {
		delete(s.children, name)
		return err
	} else if err != nil {
		s.failed(c, fresh, err)
	}
	return nil
}

// Handle takes the messages that are the Supervisor's: the end of a child and its own timers. It reports whether msg was
// one; then the owner has nothing to do with it.
func (s *Supervisor) Handle(c *actorkit.Context, msg any) bool {
	switch m := msg.(type) {
	case actorkit.ChildStopped:
		ch, known := s.children[m.Name]
		if !known || ch.ref != m.Child {
			return false
		}
		ch.ref = actorkit.Ref{}
		s.failed(c, ch, cmp.Or(m.Reason, error(errEndedItself)))
		return true
	case due:
		if m.of != s {
			return false
		}
		m.child.Restarts++
		if err := s.start(c, m.child); err != nil {
			s.failed(c, m.child, err)
		}
		return true
	}
	return false
}

func (s *Supervisor) start(c *actorkit.Context, ch *child) error {
	ch.startedAt = c.Now()
	ref, err := c.Spawn(ch.Name, ch.props)
	if err != nil {
		return err
	}
	ch.ref, ch.State, ch.NextAttempt = ref, Running, time.Time{}
	s.changed(c, ch)
	return nil
}

// failed plans the next attempt. When the owner itself is stopping no timer is set, and nothing more happens.
func (s *Supervisor) failed(c *actorkit.Context, ch *child, reason error) {
	now := c.Now()
	var v Verdict
	ch.history, v = s.options.Policy.Step(ch.history, Failure{At: now, Ran: now.Sub(ch.startedAt)}, s.options.Random())
	ch.State, ch.LastError, ch.NextAttempt = Restarting, actorkit.PublicReason(reason), now.Add(v.After)
	text, log := "supervised part failed", c.Log().Warn
	if v.GiveUp {
		ch.State = GaveUp
		text, log = "supervised part failed too often; it is tried again more slowly", c.Log().Error
	}
	log(text, slog.String("part", ch.Name), slog.String("part_kind", ch.Kind), slog.String("reason", ch.LastError),
		slog.Int("restarts", ch.Restarts), slog.Duration("next_attempt_in", v.After))
	c.After(v.After, due{s, ch})
	s.changed(c, ch)
}

func (s *Supervisor) changed(c *actorkit.Context, ch *child) {
	if s.options.Changed != nil {
		s.options.Changed(c, ch.Health, ch.ref)
	}
}

// Ref returns the running incarnation of a child. While there is none it fails with actor_stopped, with the last error
// and the wait until the next attempt; for an unknown name with invalid_request.
func (s *Supervisor) Ref(c *actorkit.Context, name string) (actorkit.Ref, error) {
	ch, known := s.children[name]
	switch {
	case known && !ch.ref.IsZero():
		return ch.ref, nil
	case known:
		return actorkit.Ref{}, vakerr.New(vakerr.ActorStopped, "%q is %s after a failure (%s)", name, ch.State, ch.LastError).
			WithRemedy("try again later; it is started again by itself").WithRetryAfter(max(0, ch.NextAttempt.Sub(c.Now())))
	}
	return actorkit.Ref{}, vakerr.New(vakerr.InvalidRequest, "%q has no supervised %q", c.Self(), name)
}

// Health returns a row for every child, sorted by name.
func (s *Supervisor) Health() []Health {
	rows := make([]Health, 0, len(s.children))
	for _, ch := range s.children {
		rows = append(rows, ch.Health)
	}
	slices.SortFunc(rows, func(a, b Health) int { return cmp.Compare(a.Name, b.Name) })
	return rows
}
