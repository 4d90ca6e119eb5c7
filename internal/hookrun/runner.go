// Package hookrun runs the hooks of an event and adds up what they say.
//
// A hook is a command in its own process group, or a request over HTTP. A command is started in the workspace with PATH,
// HOME, the variables its dialect documents and no other environment; it reads the event on stdin, has its timeout from its
// start on, and is killed with everything it started when that passes or the call is canceled. 64 KiB of each of its
// outputs are kept. What an answer means is decided by package hook.
//
// Deliver blocks as long as the hooks run: call it from the goroutine of a call, never from an actor's Receive. A Runner
// may be used by any number of goroutines; those it starts for hooks that run side by side end before Deliver returns.
package hookrun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// captureLimit is how many bytes of a hook's stdout and of its stderr are kept; defaultTimeout is for hooks that name none.
const (
	captureLimit   = 64 << 10
	defaultTimeout = 10 * time.Second
	endMargin      = 100 * time.Millisecond // of a deadline of session-end, for ending a hook before it
)

// Runner runs the hooks of one workspace.
type Runner struct {
	workspace string
	home      string
	lookup    func(name string) (value string, found bool)
	client    *http.Client
	tally     tally

	// Withdrawn reports whether a hook went with its plugin since the turn began; such a one is not started. nil: none did.
	// Set it before the first delivery; it must not block.
	Withdrawn func(*capability.Capability) bool
}

// New returns a runner for the workspace, an absolute path; home is the HOME that hooks see. lookup finds the values that
// hooks over HTTP may put into their headers; nil: none.
func New(workspace, home string, lookup func(string) (string, bool)) *Runner {
	return &Runner{workspace: workspace, home: home, lookup: lookup, client: newClient()}
}

// Delivery is one hook that was asked.
type Delivery struct {
	Hook    capability.ID
	Event   hook.Event
	Verdict hook.Verdict
	Failure string // why it gave no opinion of its own; empty: it did its work
	Took    time.Duration
	Before  json.RawMessage // the tool's input that it saw and has rewritten; nil: it did not
	After   json.RawMessage
	// InputIgnored is set when it wanted to rewrite the input, and Input.KeepInput forbade it.
	InputIgnored bool
	Context      string // what it wants the model to know; empty: nothing
}

// Recall makes the call of an input anew: hooks may rewrite it, and the next one is matched against what it has become.
type Recall func(input json.RawMessage) *hook.Call

// Deliver asks the hooks that in.Event concerns, in order of their positions, until one blocks; those that may run side by
// side do. recall is needed for the events of a tool's call only. When ctx ends, the decision is a block with
// vakerr.Canceled or vakerr.DeadlineExceeded; only at session-end a deadline is a time-out of the hooks, for nobody is left
// who could be told otherwise. The hooks' deliveries are in order and counted for Counts.
func (r *Runner) Deliver(ctx context.Context, hooks []*capability.Capability, in hook.Input, recall Recall) (hook.Decision, []Delivery) {
	in.Cwd = r.workspace
	var decision hook.Decision
	var deliveries []Delivery
	for batch := range batches(inOrder(hooks)) {
		concerned := slices.DeleteFunc(slices.Clone(batch), func(c *capability.Capability) bool {
			return r.Withdrawn != nil && r.Withdrawn(c) || !hook.Concerns(c.Config.(*capability.Hook), in)
		})
		outcomes, ended := r.askAll(ctx, concerned, in)
		blocks := false
		for i, o := range outcomes {
			d := o.Delivery
			if o.outcome.Input != nil && in.KeepInput {
				o.outcome.Input, d.InputIgnored = nil, true
			}
			if o.outcome.Input != nil {
				d.Before, d.After = in.Call.Input, o.outcome.Input
			}
			deliveries = append(deliveries, d)
			r.tally.add(d)
			var goOn bool
			decision, goOn = decision.Apply(concerned[i].ID, o.outcome)
			blocks = blocks || !goOn
		}
		switch {
		case ended != nil:
			decision.Block = ended
			return decision, deliveries
		case blocks:
			return decision, deliveries
		}
		if in.Event == hook.PreToolUse && decision.Input != nil {
			in.Call = recall(decision.Input)
		}
	}
	return decision, deliveries
}

// inOrder sorts hooks as their files have them.
func inOrder(hooks []*capability.Capability) []*capability.Capability {
	sorted := slices.DeleteFunc(slices.Clone(hooks), func(c *capability.Capability) bool {
		_, isHook := c.Config.(*capability.Hook)
		return !isHook
	})
	slices.SortStableFunc(sorted, func(a, b *capability.Capability) int {
		return cmp.Compare(a.Config.(*capability.Hook).Position, b.Config.(*capability.Hook).Position)
	})
	return sorted
}

// batches yields the hooks in groups: those of a group may run side by side.
func batches(hooks []*capability.Capability) func(yield func([]*capability.Capability) bool) {
	return func(yield func([]*capability.Capability) bool) {
		for len(hooks) > 0 {
			n := 1
			for !alone(hooks[0]) && n < len(hooks) && !alone(hooks[n]) {
				n++
			}
			if !yield(hooks[:n]) {
				return
			}
			hooks = hooks[n:]
		}
	}
}

func alone(c *capability.Capability) bool {
	h := c.Config.(*capability.Hook)
	return h.Sequential || h.Dialect == capability.DialectVAK
}

type asked struct {
	Delivery
	outcome hook.Outcome
}

// maxAtOnce bounds the hooks of one event that run at the same time.
const maxAtOnce = 8

// askAll asks hooks side by side. The error is set when ctx ended, which says nothing about the hooks.
func (r *Runner) askAll(ctx context.Context, hooks []*capability.Capability, in hook.Input) ([]asked, *vakerr.Error) {
	all := make([]asked, len(hooks))
	ended := make([]*vakerr.Error, len(hooks))
	room := make(chan struct{}, maxAtOnce)
	var running sync.WaitGroup
	for i, c := range hooks {
		room <- struct{}{}
		running.Go(func() {
			defer func() { <-room }()
			begun := time.Now()
			all[i].outcome, ended[i] = r.ask(ctx, c.ID, c.Config.(*capability.Hook), in)
			o := all[i].outcome
			all[i].Delivery = Delivery{Hook: c.ID, Event: in.Event, Verdict: o.Verdict, Failure: o.Failure, Took: time.Since(begun), Context: o.Context}
		})
	}
	running.Wait()
	for i, err := range ended {
		if err != nil {
			return all[:i], err
		}
	}
	return all, nil
}

// ask runs one hook. The error is set when ctx ended, which says nothing about the hook.
func (r *Runner) ask(ctx context.Context, id capability.ID, h *capability.Hook, in hook.Input) (hook.Outcome, *vakerr.Error) {
	if h.Refusal != "" {
		return hook.Judge(h, in, hook.Run{}), nil
	}
	told, err := in.Encode(h)
	if err != nil {
		return hook.Judge(h, in, hook.Run{StartError: err.Error()}), nil
	}
	timeout := h.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	if deadline, set := ctx.Deadline(); set && in.Event == hook.SessionEnd {
		limited := *h
		limited.Timeout = min(timeout, time.Until(deadline)-endMargin)
		if limited.Timeout <= 0 {
			return hook.Judge(h, in, hook.Run{StartError: "the session was closed before its turn came"}), nil
		}
		h, timeout = &limited, limited.Timeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var run hook.Run
	if h.Type == capability.HookHTTP {
		run = r.post(limited, h, told)
	} else {
		run = r.start(limited, id, h, in, told)
	}
	if ctx.Err() != nil {
		return hook.Outcome{}, ended(ctx, id)
	}
	return hook.Judge(h, in, run), nil
}

func ended(ctx context.Context, id capability.ID) *vakerr.Error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return vakerr.New(vakerr.DeadlineExceeded, "the deadline of the call passed while %s ran", id).
			WithRemedy("shorten the hook's timeout or give the call more time").WithCause(ctx.Err())
	}
	return vakerr.New(vakerr.Canceled, "the call was canceled while %s ran", id).WithCause(context.Cause(ctx))
}

// start runs a command.
func (r *Runner) start(ctx context.Context, id capability.ID, h *capability.Hook, in hook.Input, told []byte) hook.Run {
	result, err := childproc.Run(ctx, r.spec(id, h, in), told)
	if err != nil {
		return hook.Run{StartError: vakerr.From(err).Reason}
	}
	return hook.Run{
		TimedOut: result.TimedOut, ExitCode: result.ExitCode,
		Stdout: result.Stdout, Stderr: result.Stderr, Truncated: result.Truncated,
	}
}

// spec says how a hook is started: a command with arguments, or one that names a file of the workspace, is that program;
// everything else is for the shell.
func (r *Runner) spec(id capability.ID, h *capability.Hook, in hook.Input) childproc.Spec {
	s := childproc.Spec{
		Owner: id.String(), Command: "/bin/sh", Args: []string{"-c", h.Command}, Dir: r.workspace,
		Env: childproc.Environment(r.environment(id, h, in)), StdoutLimit: captureLimit, StderrLimit: captureLimit,
	}
	switch file := childproc.ResolveCommand(r.workspace, h.Command); {
	case h.Args != nil:
		s.Command, s.Args = file, h.Args
	case file != h.Command:
		s.Command, s.Args = file, nil
	}
	return s
}

// environment is what a hook of its dialect may rely on.
func (r *Runner) environment(id capability.ID, h *capability.Hook, in hook.Input) []string {
	env := []string{
		"HOME=" + r.home, "VAK_HOOK=" + id.Name, "VAK_EVENT=" + string(in.Event), "VAK_SESSION_ID=" + in.SessionID,
		"VAK_WORKSPACE=" + r.workspace,
	}
	if in.Call != nil {
		env = append(env, "VAK_TOOL="+in.Call.Name)
	}
	switch h.Dialect {
	case capability.DialectClaude, capability.DialectCodex:
		env = append(env, "CLAUDE_PROJECT_DIR="+r.workspace)
		if h.Root.Path != "" {
			env = append(env, "CLAUDE_PLUGIN_ROOT="+h.Root.Path, "CLAUDE_PLUGIN_DATA="+h.Root.Data)
		}
	case capability.DialectGemini:
		env = append(env, "GEMINI_PROJECT_DIR="+r.workspace, "GEMINI_SESSION_ID="+in.SessionID, "GEMINI_CWD="+r.workspace, "CLAUDE_PROJECT_DIR="+r.workspace)
	case capability.DialectCursor:
		env = append(env, "CURSOR_PROJECT_DIR="+r.workspace)
	case capability.DialectVAK:
	}
	return env
}
