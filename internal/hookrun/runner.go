// Package hookrun runs the hooks of an event and adds up what they say.
//
// A hook is a command in its own process group, started in the workspace with PATH, HOME and VAK_* and no other
// environment; it reads the event on stdin, has its timeout, and is killed with everything it started when that passes or
// the call is canceled. 64 KiB of each of its outputs are kept. What an answer means is decided by package hook.
//
// Deliver blocks as long as the hooks run: call it from the goroutine of a call, never from an actor's Receive. A Runner
// may be used by any number of goroutines and starts none itself; childproc owns those of a child.
package hookrun

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// captureLimit is how many bytes of a hook's stdout and of its stderr are kept; defaultTimeout is for hooks that name none.
const (
	captureLimit   = 64 << 10
	defaultTimeout = 10 * time.Second
)

// Runner runs the hooks of one workspace.
type Runner struct {
	workspace string
	home      string
	tally     tally
}

// New returns a runner for the workspace, an absolute path; home is the HOME that hooks see.
func New(workspace, home string) *Runner {
	return &Runner{workspace: workspace, home: home}
}

// Delivery is one hook that was asked.
type Delivery struct {
	Hook    capability.ID
	Event   hook.Event
	Verdict hook.Verdict
	Failure string // why it gave no opinion of its own; empty: it did its work
	Took    time.Duration
}

// Requests says what the permission engine is asked about a tool's call with this input, one request for each thing the
// call acts on. Hooks may rewrite the input, and the next one is matched against what it has become.
type Requests func(input json.RawMessage) []policy.Request

// Deliver asks the hooks that in.Event concerns, one after another, until one blocks. requests is needed for the events
// of a tool's call only. When ctx ends, the decision is a block with vakerr.Canceled or vakerr.DeadlineExceeded. The hooks'
// deliveries are in order and counted for Counts.
func (r *Runner) Deliver(ctx context.Context, hooks []*capability.Capability, in hook.Input, requests Requests) (hook.Decision, []Delivery) {
	in.Cwd = r.workspace
	var decision hook.Decision
	var deliveries []Delivery
	for _, c := range hooks {
		h, ok := c.Config.(*capability.Hook)
		if !ok || !hook.Concerns(h, in.Event, about(in, requests)) {
			continue
		}
		begun := time.Now()
		outcome, ended := r.ask(ctx, c.ID, h, in)
		if ended != nil {
			decision.Block = ended
			return decision, deliveries
		}
		d := Delivery{c.ID, in.Event, outcome.Verdict, outcome.Failure, time.Since(begun)}
		deliveries = append(deliveries, d)
		r.tally.add(d)
		var goOn bool
		if decision, goOn = decision.Apply(c.ID, outcome); !goOn {
			break
		}
		if in.Event == hook.PreToolUse && decision.Input != nil {
			in.Tool = &hook.Tool{Name: in.Tool.Name, Input: decision.Input}
		}
	}
	return decision, deliveries
}

func about(in hook.Input, requests Requests) []policy.Request {
	if !in.Event.OfTool() {
		return nil
	}
	return requests(in.Tool.Input)
}

// ask runs one hook. The error is set when ctx ended, which says nothing about the hook.
func (r *Runner) ask(ctx context.Context, id capability.ID, h *capability.Hook, in hook.Input) (hook.Outcome, *vakerr.Error) {
	if h.Refusal != "" {
		return hook.Judge(h, hook.Run{}), nil
	}
	stdin, err := in.Encode()
	if err != nil {
		return hook.Judge(h, hook.Run{StartError: err.Error()}), nil
	}
	timeout := h.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, err := childproc.Run(limited, r.spec(id, h, in), stdin)
	if ctx.Err() != nil {
		return hook.Outcome{}, ended(ctx, id)
	}
	run := hook.Run{
		TimedOut: result.TimedOut, ExitCode: result.ExitCode,
		Stdout: result.Stdout, Stderr: result.Stderr, Truncated: result.Truncated,
	}
	if err != nil {
		run = hook.Run{StartError: vakerr.From(err).Reason}
	}
	return hook.Judge(h, run), nil
}

func ended(ctx context.Context, id capability.ID) *vakerr.Error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return vakerr.New(vakerr.DeadlineExceeded, "the deadline of the call passed while %s ran", id).
			WithRemedy("shorten the hook's timeout or give the call more time").WithCause(ctx.Err())
	}
	return vakerr.New(vakerr.Canceled, "the call was canceled while %s ran", id).WithCause(context.Cause(ctx))
}

// spec says how a hook is started: a command that names a file of the workspace is that program, everything else is for
// the shell.
func (r *Runner) spec(id capability.ID, h *capability.Hook, in hook.Input) childproc.Spec {
	env := []string{
		"HOME=" + r.home, "VAK_HOOK=" + id.Name, "VAK_EVENT=" + string(in.Event), "VAK_SESSION_ID=" + in.SessionID,
		"VAK_WORKSPACE=" + r.workspace,
	}
	if in.Tool != nil {
		env = append(env, "VAK_TOOL="+in.Tool.Name)
	}
	s := childproc.Spec{
		Owner: id.String(), Command: "/bin/sh", Args: []string{"-c", h.Command}, Dir: r.workspace,
		Env: childproc.Environment(env), StdoutLimit: captureLimit, StderrLimit: captureLimit,
	}
	if file := childproc.ResolveCommand(r.workspace, h.Command); file != h.Command {
		s.Command, s.Args = file, nil
	}
	return s
}
