package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/hookrun"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/schema"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Recorder writes what happens in a call into its session's ledger, in order. How the call ended is in its Outcome.
type Recorder interface {
	// Record notes body. When durable is set it returns after body, and all that was noted before it, is on the disk.
	Record(ctx context.Context, body ledger.Body, durable bool) error
}

// Spill puts a result that is too large to be shown aside and returns what is shown in its place.
type Spill interface {
	Shorten(result op.Result) (op.Result, error)
}

// Pipeline is what the calls of a tenant share. All fields are set; it is never changed.
type Pipeline struct {
	Workspace string // absolute
	Gate      *turn.Gate
	Ops       *op.Table
	Schemas   *schema.Cache
	Hooks     *hookrun.Runner
	Spill     Spill
	Approver  Approver // asked for the calls of attended sessions
	// Bundled names the files in the folder of a skill, and says that there are more. It blocks on the file system only.
	Bundled func(ctx context.Context, folder string) (names []string, more bool)
	Reader  string // the tool that reads a file, {"path": ...}, for prompts that name files

	// Everything makes read-only calls durable before their effect, too (ledger durability "all").
	Everything bool
}

// Call is one call to be made.
type Call struct {
	Tenant, Session, Turn, ID string
	Channels                  []string        // by whose policy in force now the call is judged: the session's, a worker's own
	Attended                  bool            // somebody can answer an approval
	Name                      string          // as the caller wrote it
	Arguments                 json.RawMessage // as the caller wrote them
	Method                    string          // set: a request of MCP to the server Name, other than tools/call
	Client                    string          // who answers what a server asks meanwhile; empty: nobody
	Extra                     json.RawMessage // what a server's request carries besides; empty: nothing
	WritePaths                []string        // nil: not restricted
	Admission                 *Admission      // what the turn is bound to
	Discovery                 *Discovery      // of the session
	Allowances                *Allowances     // of the session; nil: none, and none are kept
	Shard                     uint32          // of the gate; the same for all calls of a session
	Flight                    *Flight         // where the call can be judged while it runs; nil: nobody does
}

// Outcome is what became of a call: a result, or a refusal.
type Outcome struct {
	Result   op.Result
	Refusal  *vakerr.Error
	Tool     string // the tool that ran or would have; empty when the name did not resolve
	Repaired string // how the address was mended; empty when it was exact

	// Entry is what the ledger says of the end of the call. Whoever made the call records it, together with what else
	// ends then.
	Entry ledger.Body
}

// Resolve is the first stage. It is pure and takes microseconds, so that whoever starts the call knows what it is about.
func (c Call) Resolve() (turn.Target, error) {
	if c.Method != "" {
		return turn.ResolveRequest(c.Admission.Admitted, c.Name, c.Method, c.Arguments, c.removed)
	}
	return turn.Resolve(c.Admission.Admitted, c.Name, c.Arguments, c.removed)
}

// removed tells the epoch in which a capability went away, from what the registry remembers.
func (c Call) removed(id capability.ID) (capability.Epoch, bool) {
	for _, step := range slices.Backward(c.Admission.View.History.Steps()) {
		if step.Epoch <= c.Admission.Epoch && slices.Contains(step.Delta.Removed, id) {
			return step.Epoch, true
		}
	}
	return 0, false
}

// Run makes the call. resolved and refusal are what Resolve returned. Cancelling ctx with a cause that is a
// *vakerr.Error makes that the refusal.
func (p *Pipeline) Run(ctx context.Context, c Call, resolved turn.Target, refusal error, rec Recorder) Outcome {
	r := &run{Pipeline: p, call: c, target: resolved, rec: rec, flight: c.Flight}
	if r.flight == nil {
		r.flight = &Flight{}
	}
	if refusal != nil {
		return r.refuse(ctx, refusal)
	}
	if err := r.prepare(ctx); err != nil {
		return r.refuse(ctx, err)
	}
	return r.perform(ctx)
}

// run is one call on its way.
type run struct {
	*Pipeline
	call   Call
	target turn.Target
	rec    Recorder
	flight *Flight

	consents map[consented]struct{} // what a person has said yes to
	judged   *policy.Current        // by which the call was judged last
	subjects []policy.Request       // on which it was
	unasked  []policy.Request       // what an op found that has to be asked before it runs
	unhad    bool                   // nobody said yes to that, so the call has had no effect

	hookAsks string   // why a hook wants a person asked; empty: none does, or a person has said yes
	told     []string // what hooks want the model to know besides the result
}

// prepare goes through every stage that can refuse without an effect.
func (r *run) prepare(ctx context.Context) error {
	if err := r.authorize(); err != nil {
		return err
	}
	if err := r.preHooks(ctx); err != nil {
		return err
	}
	if err := r.checkArguments(); err != nil {
		return err
	}
	if err := r.checkWritePath(); err != nil { // before anybody is asked about what must not be written anyway
		return err
	}
	if err := r.permit(ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// authorize judges by the policy and revocations in force now, not by those the turn began with.
func (r *run) authorize() error {
	pass := r.Gate.Enter(r.call.Shard)
	view, refused := pass.View(), r.call.gone(pass, r.target.IDs)
	pass.Leave()
	if refused != nil {
		return refused
	}
	return r.authorizeIn(view)
}

// gone reports what of the call is revoked, or went with its plugin; nil when nothing is.
func (c Call) gone(pass turn.Pass, ids []capability.ID) *vakerr.Error {
	if refused := pass.Refuse(ids); refused != nil {
		return refused
	}
	return pass.Withdrawn(c.Admission.Set, ids)
}

// authorizeIn is authorize but for the revocations.
func (r *run) authorizeIn(view *turn.View) error {
	for _, name := range r.call.Channels {
		if err := r.shownOn(view.Policy.Channel(name)); err != nil {
			return err
		}
	}
	if blocked := r.call.Admission.RefusedByHook(); blocked != nil {
		return blocked
	}
	return nil
}

// shownOn reports what of the call a channel does not show.
func (r *run) shownOn(c *policy.Channel) error {
	gone := func(what any) error {
		return vakerr.New(vakerr.ChannelDenied, "%v is not available on this channel any more", what).WithRemedy("do without it")
	}
	for _, id := range r.target.IDs {
		if !c.Allows(id) {
			return gone(id)
		}
	}
	if r.target.ServerTool != "" && !c.AllowsServerTool(r.target.Server, r.target.ServerTool) {
		return gone("that tool of " + r.target.Server)
	}
	return nil
}

func (r *run) checkArguments() error {
	arguments, err := schema.Read(r.target.Arguments)
	if err != nil {
		return err
	}
	if err := r.Schemas.Get(r.target.Definition.InputSchema).Check(r.target.Tool.ID.Name, arguments); err != nil {
		return err
	}
	if r.target.Observed == nil {
		return nil
	}
	// The broker's schema knows no other spelling of "arguments", so these are the target's ServerArguments.
	return r.Schemas.Get(r.target.Observed.InputSchema).Check(r.target.Server+"/"+r.target.ServerTool, arguments.Object("arguments"))
}

// confined is the permission engine of a policy as it holds for the call: with what answers left to its session, confined
// as the turn is.
func (r *run) confined(current *policy.Current) *policy.Engine {
	return r.call.Admission.Confine(current.Engine).Learning(r.call.Allowances.known())
}

// requests is a target as the permission engine is asked about it, one request a subject, paths relative to the
// workspace. There is at least one.
func (r *run) requests(t turn.Target) []policy.Request {
	all := t.Requests()
	for i := range all {
		if all[i].Kind == policy.SubjectPath {
			all[i].Subject = r.relative(all[i].Subject)
		}
	}
	return all
}

func (r *run) relative(p string) string {
	if !filepath.IsAbs(p) {
		return path.Clean(p)
	}
	rel, err := filepath.Rel(r.Workspace, p)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return p
	}
	return filepath.ToSlash(rel)
}

// readOnly reports whether the call declares that it changes nothing.
func (r *run) readOnly() bool { return r.target.Requests()[0].ReadOnly }

func (r *run) checkWritePath() error {
	o, err := r.op()
	if err != nil || o.WriteTarget == nil {
		return err
	}
	target, err := o.WriteTarget(r.target.Arguments)
	if err != nil {
		return err
	}
	return op.CheckWritePath(r.call.WritePaths, target)
}

func (r *run) op() (*op.Op, error) {
	id := r.target.Definition.Op
	if id == "" {
		id = r.target.Tool.ID.Name
	}
	o, ok := r.Ops.Lookup(id)
	if !ok {
		return nil, vakerr.New(vakerr.CapabilityUnavailable, "%s is declared, but nothing in this program implements it", r.target.Tool.ID).
			WithRemedy("register an op of that id, or remove the declaration")
	}
	return o, nil
}

func (r *run) refuse(ctx context.Context, err error) Outcome {
	public := outcomeOf(ctx, err)
	body := ledger.CallRefused{Turn: r.call.Turn, Call: r.call.ID, Address: bounded(r.call.Name), Error: ledger.FailureOf(public)}
	out := Outcome{Refusal: public}
	if r.target.Tool != nil {
		body.Capability = r.subject()
		out.Tool, out.Repaired = r.target.Tool.ID.Name, r.repaired()
	}
	out.Entry = body
	return out
}

// outcomeOf is what a call that ended with err is told. Who gave it up says why better than what broke off then, but for a
// person who did not answer within the caller's patience.
func outcomeOf(ctx context.Context, err error) *vakerr.Error {
	e := vakerr.From(err)
	if e.Code == vakerr.ApprovalExpired {
		return e
	}
	if cause := context.Cause(ctx); cause != nil {
		if given := canceled(cause); given.Code != e.Code {
			return given
		}
	}
	return e
}

// canceled is the error of a call that was given up: what the canceller said, or that its time was up.
func canceled(cause error) *vakerr.Error {
	if e := vakerr.From(cause); e.Code != vakerr.Internal {
		return e
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return vakerr.New(vakerr.DeadlineExceeded, "the call took longer than its caller was ready to wait").
			WithRemedy("allow more time, or ask for less")
	}
	return vakerr.New(vakerr.Canceled, "the call was given up by its caller")
}

// subject is the capability a call is about: the server or skill it names, else the tool.
func (r *run) subject() capability.ID { return r.target.IDs[len(r.target.IDs)-1] }

func (r *run) repaired() string {
	if r.target.Repaired == "" || r.target.Repaired == turn.ExposedName(r.target.Server, r.target.ServerTool) {
		return "" // the exposed name is a tool's exact address
	}
	return r.target.Repaired + " -> " + r.target.Tool.ID.Name + " " + r.target.Server + "/" + r.target.ServerTool
}

const maxAddress = 512 // bytes of a caller's spelling that the ledger keeps

func bounded(s string) string {
	if len(s) > maxAddress {
		return strings.ToValidUTF8(s[:maxAddress], "") + "..."
	}
	return s
}
