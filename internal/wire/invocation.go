package wire

import (
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
)

// Invocation is the message form of what a command or skill says of how it is to be run; nil for the zero id.
func Invocation(id capability.ID, v capability.Invocation) *sessionv1.Invocation {
	if id == (capability.ID{}) {
		return nil
	}
	return &sessionv1.Invocation{
		Capability: id.String(), AllowedTools: v.AllowedTools, DisallowedTools: v.DisallowedTools, Model: v.Model, Effort: v.Effort,
		Context: v.Context, Agent: v.Agent, Background: v.Background,
	}
}
