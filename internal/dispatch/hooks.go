package dispatch

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/hookrun"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func (r *run) preHooks(ctx context.Context) error {
	decision, err := r.runHooks(ctx, hook.Input{Event: hook.PreToolUse})
	switch {
	case err != nil:
		return err
	case decision.Block != nil:
		return decision.Block
	}
	r.hookAsks, r.told = decision.Ask, decision.Context
	if decision.Input == nil {
		return nil
	}
	target, err := r.resolve(decision.Input)
	if err != nil {
		return err
	}
	target.Repaired = r.target.Repaired
	r.target = target
	return r.authorize()
}

// resolve is the first stage again, for arguments that a hook wrote.
func (r *run) resolve(arguments json.RawMessage) (turn.Target, error) {
	return turn.Resolve(r.call.Admission.Admitted, r.target.Tool.ID.Name, arguments, r.call.removed)
}

// runHooks asks the hooks of the turn about the call, and records that they were asked.
func (r *run) runHooks(ctx context.Context, in hook.Input) (hook.Decision, error) {
	if len(r.call.Admission.Hooks) == 0 {
		return hook.Decision{}, nil // before the call is judged for them
	}
	in.Call = r.hooked(r.target)
	return r.deliver(ctx, r.call, in, r.rec, func(input json.RawMessage) *hook.Call {
		target, err := r.resolve(input)
		if err != nil { // the next stage will say so; until then the hooks judge what was asked for
			target = r.target
		}
		return r.hooked(target)
	})
}

// Tell asks the hooks of c's turn about an event of the session, and records that they were asked. c names no call. It blocks
// as long as they run. The error says that ctx ended meanwhile, or that the ledger took nothing.
func (p *Pipeline) Tell(ctx context.Context, c Call, in hook.Input, rec Recorder) (hook.Decision, error) {
	decision, err := p.deliver(ctx, c, in, rec, nil)
	if b := decision.Block; err == nil && b != nil && b.Code != vakerr.HookBlocked && b.Code != vakerr.HookFailed { // no hook said so
		err = b
	}
	return decision, err
}

// deliver asks the hooks in force. What was asked is recorded although ctx may have ended by then.
func (p *Pipeline) deliver(ctx context.Context, c Call, in hook.Input, rec Recorder, recall hookrun.Recall) (hook.Decision, error) {
	if len(c.Admission.Hooks) == 0 {
		return hook.Decision{}, nil
	}
	hooks, current := p.hooksInForce(c)
	if len(hooks) == 0 {
		return hook.Decision{}, nil
	}
	in.SessionID, in.Mode, in.KeepInput = c.Session, current.Engine.Mode().String(), current.KeepInput
	decision, deliveries := p.Hooks.Deliver(ctx, hooks, in, recall)
	for _, d := range deliveries {
		if err := rec.Record(context.WithoutCancel(ctx), HookBody(c.Turn, c.ID, d), false); err != nil {
			return decision, err
		}
	}
	return decision, nil
}

// hooksInForce are the hooks of a turn that have not been revoked or hidden from the session's channel since it began. What
// narrows a worker besides never takes a hook away: that would take a guard away.
func (p *Pipeline) hooksInForce(c Call) ([]*capability.Capability, *policy.Current) {
	pass := p.Gate.Enter(c.Shard)
	defer pass.Leave()
	current := pass.View().Policy
	hooks := slices.DeleteFunc(slices.Clone(c.Admission.Hooks), func(h *capability.Capability) bool {
		_, revoked := pass.Revoked(h.ID)
		return revoked || len(c.Channels) > 0 && !current.Channel(c.Channels[0]).AllowsHook(h.ID.Name)
	})
	return hooks, current
}

// hooked is a target as hooks are asked about it.
func (r *run) hooked(t turn.Target) *hook.Call {
	c := &hook.Call{Name: t.Tool.ID.Name, Input: t.Arguments, ID: r.call.ID, Requests: r.requests(t)}
	if t.ServerTool != "" {
		c.Server, c.ServerTool, c.ServerInput = t.Server, t.ServerTool, t.ServerArguments
	}
	return c
}

// HookBody is what the ledger says of one hook that was asked; call is empty where it was about none.
func HookBody(turnID, call string, d hookrun.Delivery) ledger.HookRan {
	body := ledger.HookRan{
		Turn: turnID, Call: call, Hook: d.Hook, Event: string(d.Event), Decision: d.Verdict.String(), DurationMicros: d.Took.Microseconds(),
	}
	if d.Context != "" {
		body.Context = capability.ContentDigest([]byte(d.Context))
	}
	body.InputIgnored = d.InputIgnored
	if d.After != nil {
		body.InputBefore, body.InputAfter = capability.ContentDigest(d.Before), capability.ContentDigest(d.After)
	}
	if d.Failure != "" {
		failure := ledger.FailureOf(vakerr.New(vakerr.HookFailed, "%s", d.Failure))
		body.Error = &failure
	}
	return body
}
