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
	ref       actorkit.Ref // of the incarnation that runs or stops; zero while there is none
	startedAt time.Time
	history   History
	timer     actorkit.Timer // set while there is no incarnation

	removed bool   // the incarnation was told to stop
	heir    *child // starts under this name once the removed incarnation has ended
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

// Add starts a child and keeps it running. While a removed one of that name is still stopping, the new one waits for its
// end. A child that cannot be started now counts as failed and is tried again; only a name that cannot be, or is in use
// already, is an error (invalid_request).
func (s *Supervisor) Add(c *actorkit.Context, name string, p actorkit.Props) error {
	fresh := &child{Health: Health{Name: name, Kind: p.Kind}, props: p}
	if old, used := s.children[name]; used {
		if !old.removed || old.heir != nil {
			return vakerr.New(vakerr.InvalidRequest, "%q already has a supervised %q", c.Self(), name)
		}
		fresh.State = Restarting
		old.heir = fresh
		return nil
	}
	s.children[name] = fresh
	if err := s.start(c, fresh); vakerr.CodeOf(err) == vakerr.InvalidRequest {
		delete(s.children, name)
		return err
	} else if err != nil {
		s.failed(c, fresh, err)
	}
	return nil
}

// Remove stops a child for good. A name that is not supervised is ignored.
func (s *Supervisor) Remove(c *actorkit.Context, name string) {
	ch, known := s.children[name]
	if !known {
		return
	}
	ch.heir = nil
	if ch.ref.IsZero() {
		ch.timer.Stop()
		delete(s.children, name)
		return
	}
	if !ch.removed {
		ch.removed = true
		c.Stop(ch.ref)
	}
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
		s.ended(c, ch, m.Reason)
		return true
	case due:
		if m.of != s {
			return false
		}
		m.child.Restarts++
		s.restart(c, m.child)
		return true
	}
	return false
}

func (s *Supervisor) ended(c *actorkit.Context, ch *child, reason error) {
	ch.ref = actorkit.Ref{}
	if !ch.removed {
		s.failed(c, ch, cmp.Or(reason, error(errEndedItself)))
		return
	}
	delete(s.children, ch.Name)
	if heir := ch.heir; heir != nil {
		s.children[heir.Name] = heir
		s.restart(c, heir)
	}
}

// restart starts a child under a name that was good before.
func (s *Supervisor) restart(c *actorkit.Context, ch *child) {
	if err := s.start(c, ch); err != nil {
		s.failed(c, ch, err)
	}
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
	ch.timer = c.After(v.After, due{s, ch})
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
	case known && !ch.removed && !ch.ref.IsZero():
		return ch.ref, nil
	case known && !ch.removed:
		return actorkit.Ref{}, vakerr.New(vakerr.ActorStopped, "%q is %s after a failure (%s)", name, ch.State, ch.LastError).
			WithRemedy("try again later; it is started again by itself").WithRetryAfter(max(0, ch.NextAttempt.Sub(c.Now())))
	case known && ch.heir != nil:
		return actorkit.Ref{}, vakerr.New(vakerr.ActorStopped, "%q is being replaced", name).WithRemedy("try again")
	}
	return actorkit.Ref{}, vakerr.New(vakerr.InvalidRequest, "%q has no supervised %q", c.Self(), name)
}

// Health returns a row for every child, sorted by name. Removed ones have none.
func (s *Supervisor) Health() []Health {
	rows := make([]Health, 0, len(s.children))
	for _, ch := range s.children {
		if ch.removed {
			if ch = ch.heir; ch == nil {
				continue
			}
		}
		rows = append(rows, ch.Health)
	}
	slices.SortFunc(rows, func(a, b Health) int { return cmp.Compare(a.Name, b.Name) })
	return rows
}
