package dispatch

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxRecorded bounds the arguments and results that the ledger keeps whole, in bytes; of larger ones it keeps digests.
const maxRecorded = 16 << 10

// perform records the call, passes the gate and has the effect.
func (r *run) perform(ctx context.Context) Outcome {
	if err := r.rec.Record(ctx, r.started(), r.Everything || !r.readOnly()); err != nil {
		return Outcome{Refusal: vakerr.From(err), Tool: r.target.Tool.ID.Name, Repaired: r.repaired()}
	}
	begun := time.Now()
	result, err := r.effect(ctx)
	if err == nil {
		result, err = r.finish(ctx, result, time.Since(begun))
	}
	out := Outcome{Result: result, Tool: r.target.Tool.ID.Name, Repaired: r.repaired()}
	unknown := false
	if err != nil {
		// A call that was given up or lost on its way may have had its effect all the same.
		unknown = vakerr.CodeOf(err) == vakerr.OutcomeUnknown || context.Cause(ctx) != nil && !r.readOnly() && !r.unhad
		out = Outcome{Refusal: outcomeOf(ctx, err), Tool: out.Tool, Repaired: out.Repaired}
		if unknown && out.Refusal.Code != vakerr.CapabilityRevoked {
			out.Refusal = out.Refusal.WithRemedy("the call may have had its effect: look before you repeat it")
		}
	}
	out.Entry = r.finished(out, unknown, time.Since(begun))
	return out
}

func (r *run) started() ledger.CallStarted {
	body := ledger.CallStarted{
		Turn: r.call.Turn, Call: r.call.ID, Capability: r.subject(), Address: bounded(r.call.Name),
		ArgumentsDigest: capability.ContentDigest(r.target.Arguments), Repaired: r.target.Repaired != "",
	}
	if len(r.target.Arguments) <= maxRecorded {
		body.Arguments = r.target.Arguments
	}
	return body
}

func (r *run) finished(out Outcome, unknown bool, took time.Duration) ledger.CallFinished {
	body := ledger.CallFinished{Turn: r.call.Turn, Call: r.call.ID, Outcome: ledger.CallOK, DurationMicros: took.Microseconds()}
	if out.Refusal != nil {
		body.Outcome = ledger.CallFailed
		if unknown {
			body.Outcome = ledger.CallUnknown
		}
		failure := ledger.FailureOf(out.Refusal)
		body.Error = &failure
		return body
	}
	if out.Result.IsError {
		body.Outcome = ledger.CallFailed
	}
	body.ResultBytes = int64(len(out.Result.Content))
	body.ResultDigest = capability.ContentDigest(out.Result.Content)
	if len(out.Result.Content) <= maxRecorded {
		body.Result = out.Result.Content
	}
	return body
}

// effect passes the gate and runs the op. An op that waits before its effect passes the gate once more, right before it. One
// that finds out there that a person has to be asked has had no effect: it runs again after the answer.
func (r *run) effect(ctx context.Context) (op.Result, error) {
	o, err := r.op()
	if err != nil {
		return op.Result{}, err
	}
	for {
		result, err := r.attempt(ctx, o)
		if err == nil || r.unasked == nil {
			return result, err
		}
		requests := r.unasked
		r.unasked = nil
		if err := r.obtain(ctx, requests); err != nil {
			r.unhad = true
			return op.Result{}, err
		}
	}
}

func (r *run) attempt(ctx context.Context, o *op.Op) (op.Result, error) {
	r.fly()
	if err := r.commit(); err != nil {
		return op.Result{}, err
	}
	return o.Run(ctx, op.Call{
		Tenant: r.call.Tenant, Session: r.call.Session, Turn: r.call.Turn, ID: r.call.ID,
		Arguments: r.target.Arguments, WritePaths: r.call.WritePaths,
		Client: r.call.Client, Extra: r.call.Extra, Raw: r.call.Method != "",
		Bound:  r.call.Admission.Bound(r.call.Discovery),
		Permit: r.permitObserved, Approved: r.approved, PermitPath: r.permitPath, MaySee: r.maySee,
		Commit: r.commit,
	})
}

// permitPath judges a call again by the path that it really acts on.
func (r *run) permitPath(p string) error {
	requests := r.requests(r.target)
	for i := range requests {
		if requests[i].Kind == policy.SubjectPath {
			requests[i].Subject = p
		}
	}
	return r.recheck(requests)
}

// maySee judges a file that a call comes across, as one that it names and as one that is read. Nobody is asked about it.
func (r *run) maySee(p string) bool {
	req := r.requests(r.target)[0]
	req.Subject, req.Kind = p, policy.SubjectPath
	read := req
	read.Tool = r.Reader
	d, _ := decide(r.confined(r.Gate.View().Policy), []policy.Request{req, read}, r.consents)
	return d.Effect == policy.Allow
}

// permitObserved judges a call of a server's tool again, by what the tool declares of itself. Before, when its catalog was
// not known, nothing could be held against it.
func (r *run) permitObserved(server string, tool *capability.ObservedTool) error {
	return r.recheck([]policy.Request{turn.ServerRequest(server, tool.Name, tool)})
}

// approved is the version of a server's tool that is in force, whatever the server says of it.
func (r *run) approved(server string, tool capability.ObservedTool) capability.ObservedTool {
	view, id := r.Gate.View(), capability.ID{Kind: capability.KindMCP, Name: server}
	if c, is := view.Snapshot.Set.Get(id); is {
		return view.Pins.Tool(id, c.Config.(*capability.Server), tool)
	}
	return tool
}

// commit is the gate: the check and the decision to go on are one step, which no revocation can come between. A policy
// that is in force since the call was judged judges it again.
func (r *run) commit() error {
	pass := r.Gate.Enter(r.call.Shard)
	view, refused := pass.View(), r.call.gone(pass, r.target.IDs)
	pass.Leave()
	switch {
	case refused != nil:
		return refused
	case view.Policy == r.judged:
		return nil
	}
	if err := r.authorizeIn(view); err != nil {
		return err
	}
	return r.recheck(r.subjects)
}

// finish checks and shortens a result and lets the post-tool hooks annotate it.
func (r *run) finish(ctx context.Context, result op.Result, took time.Duration) (op.Result, error) {
	if err := r.checkOutput(result); err != nil {
		return op.Result{}, err
	}
	if r.call.Method == "" { // who asks for a resource by its address wants all of it
		var err error
		if result, err = r.Spill.Shorten(result); err != nil {
			return op.Result{}, err
		}
	}
	event := hook.PostToolUse
	if result.IsError {
		event = hook.PostToolFailure
	}
	decision, err := r.runHooks(ctx, hook.Input{Event: event, Text: string(result.Content), Took: took})
	if err != nil {
		return op.Result{}, err
	}
	if decision.Output != nil {
		if result, err = replaced(result, decision.Output); err != nil {
			return op.Result{}, err
		}
	}
	decision.Context = slices.Concat(r.told, decision.Context)
	if text := decision.Annotation(); text != "" {
		return result.Annotated(text)
	}
	return result, nil
}

// replaced is a result in whose place a hook put another: a complete one, or a text.
func replaced(result op.Result, output json.RawMessage) (op.Result, error) {
	var text string
	if json.Unmarshal(output, &text) == nil {
		return op.Text(text), nil
	}
	var shape struct {
		Content []json.RawMessage `json:"content"`
	}
	if json.Unmarshal(output, &shape) != nil || shape.Content == nil {
		return op.Text(string(output)), nil
	}
	next, err := op.Passed(output)
	next.Promote, next.Retrieved = result.Promote, result.Retrieved
	return next, err
}

// checkOutput holds a tool of this host to the output it declares. What a server answers is its own affair.
func (r *run) checkOutput(result op.Result) error {
	if r.target.Definition.OutputSchema == nil || result.IsError {
		return nil
	}
	var structured struct {
		Content json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(result.Content, &structured); err != nil {
		return vakerr.New(vakerr.OutputInvalid, "%s answered with something else than a tool result", r.target.Tool.ID).WithCause(err)
	}
	wrong, err := r.Schemas.Get(r.target.Definition.OutputSchema).Violations(structured.Content)
	if err != nil || len(wrong) > 0 {
		return vakerr.New(vakerr.OutputInvalid, "the result of %s does not fit the schema it declares; it is withheld", r.target.Tool.ID).
			WithRemedy("report it to the author of the tool").WithCause(err)
	}
	return nil
}
