package supervision

import "github.com/vak-actors/vak-actors/internal/actorkit"

// Part is one child of a Guardian.
type Part struct {
	Name  string
	Props actorkit.Props
}

// Lookup asks a Guardian for the running incarnation of a part. The answer is an actorkit.Ref, or the error of
// Supervisor.Ref.
type Lookup struct{ Name string }

// GetHealth asks a Guardian how its parts are. The answer is a []Health.
type GetHealth struct{}

// Guardian makes an actor that does nothing but keep its parts running. It has no state worth a failure, so as a root it
// is only ever resumed; parts are started in the order given and independent of each other.
func Guardian(o Options, parts ...Part) actorkit.Props {
	return actorkit.Props{Kind: "guardian", New: func() actorkit.Actor { return &guardian{supervisor: New(o), parts: parts} }}
}

type guardian struct {
	supervisor *Supervisor
	parts      []Part
}

// Receive implements actorkit.Actor.
func (g *guardian) Receive(c *actorkit.Context, msg any) {
	if g.supervisor.Handle(c, msg) {
		return
	}
	switch m := msg.(type) {
	case actorkit.Started:
		for _, p := range g.parts {
			if err := g.supervisor.Add(c, p.Name, p.Props); err != nil {
				panic(err) // two parts of one name: a mistake of the composition, and Started must not succeed
			}
		}
	case Lookup:
		ref, err := g.supervisor.Ref(c, m.Name)
		if err != nil {
			c.Reply(err)
			return
		}
		c.Reply(ref)
	case GetHealth:
		c.Reply(g.supervisor.Health())
	}
}
