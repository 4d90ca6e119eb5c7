package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/expand"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of what one document may run.
const (
	commandTime   = 2 * time.Minute // each command
	commandOutput = 30_000          // bytes of output that are shown
	commandLine   = 32 << 10        // bytes of a command
)

// Expand reads the files and runs the commands of a plan, and puts the prompt together. c says for which turn; its ID is
// the first part of those of the calls that are made. A file is read by the read tool, as if the model had called it; what
// that refuses is said in its place. A command is judged as a call of the shell; where that asks, a person is asked, if one is
// there. Anything but an allow, or a failure, ends the whole expansion with an error, and none is run before all are allowed.
func (p *Pipeline) Expand(ctx context.Context, c Call, plan expand.Plan, rec Recorder) (string, error) {
	pass := p.Gate.Enter(c.Shard)
	refused := c.gone(pass, []capability.ID{plan.ID})
	pass.Leave()
	if refused != nil {
		return "", refused
	}
	e := expansion{Pipeline: p, call: c, plan: plan, rec: rec}
	for _, part := range plan.Parts {
		if part.Kind != expand.Command {
			continue
		}
		if err := e.permit(ctx, part.Text); err != nil {
			return "", err
		}
	}
	var results []string
	for _, part := range plan.Parts {
		var text string
		var err error
		switch part.Kind {
		case expand.Text:
			continue
		case expand.Command:
			text, err = e.run(ctx, part.Text)
		case expand.File, expand.Mention:
			text, err = e.read(ctx, part)
		case expand.Listing:
			text = expand.FileList(e.Bundled(ctx, part.Path))
		}
		if err != nil {
			return "", err
		}
		results = append(results, text)
	}
	return plan.Join(results)
}

// expansion is one plan on its way.
type expansion struct {
	*Pipeline
	call  Call
	plan  expand.Plan
	rec   Recorder
	calls int

	consents map[consented]struct{} // what a person has said yes to
}

func (e *expansion) nextID() string {
	e.calls++
	return fmt.Sprintf("%s.%d", e.call.ID, e.calls)
}

// read reads a file by the read tool. A path that leads to no file of the workspace is text that looks like one.
func (e *expansion) read(ctx context.Context, part expand.Part) (string, error) {
	if !e.isFile(part.Path) {
		if part.Kind == expand.File {
			return fmt.Sprintf("[%s is no file of the workspace]", part.Path), nil
		}
		return "", nil
	}
	arguments, err := json.Marshal(map[string]any{"path": part.Path})
	if err != nil {
		return "", err
	}
	c := e.call
	c.ID, c.Name, c.Arguments = e.nextID(), e.Reader, arguments
	target, refusal := c.Resolve()
	out := e.Run(ctx, c, target, refusal, e.rec)
	if out.Entry != nil {
		if err := e.rec.Record(ctx, out.Entry, false); err != nil {
			return "", err
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return "", canceled(cause)
	}
	text := resultText(out.Result.Content)
	switch {
	case out.Refusal != nil:
		text = fmt.Sprintf("[%s was not read: %s]", part.Path, out.Refusal.Reason)
	case out.Result.IsError:
		text = fmt.Sprintf("[%s was not read: %s]", part.Path, text)
	case part.Kind == expand.Mention:
		text = fmt.Sprintf("<file path=%q>\n%s\n</file>", part.Path, strings.TrimRight(text, "\n"))
	}
	return text, nil
}

func (e *expansion) isFile(p string) bool {
	rel, err := rootfs.Relative(e.Workspace, p)
	if err != nil {
		return false
	}
	root, err := rootfs.Open(e.Workspace)
	if err != nil {
		return false
	}
	defer root.Close()
	file, _, err := root.OpenRegular(rel)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// resultText is the text of a tool's result.
func resultText(content json.RawMessage) string {
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(content, &result) != nil {
		return ""
	}
	var b strings.Builder
	for _, c := range result.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

// shell is a command as a call of the shell, and what the permission engine is asked about it.
func (e *expansion) shell(line string) (*run, []policy.Request, error) {
	arguments, err := json.Marshal(map[string]any{"command": line})
	if err != nil {
		return nil, nil, err
	}
	r := &run{
		Pipeline: e.Pipeline, call: e.call, rec: e.rec, flight: e.call.Flight, consents: e.consents,
		target: turn.Target{IDs: []capability.ID{e.plan.ID}, Arguments: arguments},
	}
	if r.flight == nil {
		r.flight = &Flight{}
	}
	r.call.Arguments = arguments
	return r, []policy.Request{{Tool: policy.ShellTool, Kind: policy.SubjectCommand, Subject: line, Arguments: string(arguments)}}, nil
}

// permit asks about a command what is asked about a call of the shell. It may wait for a person.
func (e *expansion) permit(ctx context.Context, line string) error {
	if len(line) > commandLine {
		return vakerr.New(vakerr.TooLarge, "a command of %s has %d bytes, at most %d are run", e.plan.ID, len(line), commandLine).
			WithRemedy("give shorter arguments, or put it into a script")
	}
	if err := e.mayRun(); err != nil {
		return err
	}
	r, requests, err := e.shell(line)
	if err != nil {
		return err
	}
	err = r.obtain(ctx, requests)
	e.consents = r.consents
	return e.explained(err)
}

// permitNow asks again right before a command runs, for what was withdrawn while others ran or a person was asked.
func (e *expansion) permitNow(line string) error {
	if err := e.mayRun(); err != nil {
		return err
	}
	r, requests, err := e.shell(line)
	if err != nil {
		return err
	}
	return e.explained(r.recheck(requests))
}

func (e *expansion) explained(err error) error {
	if err == nil {
		return nil
	}
	refused := *vakerr.From(err)
	refused.Reason = e.plan.ID.String() + " cannot be expanded: " + refused.Reason
	return &refused
}

// mayRun reports what keeps the document from running any command.
func (e *expansion) mayRun() error {
	pass := e.Gate.Enter(e.call.Shard)
	view, refused := pass.View(), e.call.gone(pass, []capability.ID{e.plan.ID})
	pass.Leave()
	if refused != nil {
		return refused
	}
	shell := capability.ID{Kind: capability.KindTool, Name: policy.ShellTool}
	if !e.call.Admission.Shows(shell) {
		return vakerr.New(vakerr.ChannelDenied, "%s runs a command, which is beyond the tools of this turn", e.plan.ID).WithRemedy("do without it")
	}
	for _, name := range e.call.Channels {
		if c := view.Policy.Channel(name); !c.Allows(shell) || !c.Allows(e.plan.ID) {
			return vakerr.New(vakerr.ChannelDenied, "%s runs a command, which this channel does not allow", e.plan.ID).WithRemedy("do without it")
		}
	}
	if blocked := e.call.Admission.RefusedByHook(); blocked != nil {
		return blocked
	}
	if c, ok := e.call.Admission.Get(e.plan.ID); ok && c.Origin.Kind == capability.OriginWorkspace && view.Policy.HoldCommands != "" {
		return vakerr.New(vakerr.PermissionDenied, "%s runs a command, and %s", e.plan.ID, view.Policy.HoldCommands).
			WithRemedy("read the document; then trust the workspace with `vak-actors trust`")
	}
	return nil
}

// run runs a command and returns what it wrote to stdout.
func (e *expansion) run(ctx context.Context, line string) (string, error) {
	arguments, err := json.Marshal(map[string]any{"command": line})
	if err != nil {
		return "", err
	}
	started := ledger.CallStarted{
		Turn: e.call.Turn, Call: e.nextID(), Capability: e.plan.ID, Address: policy.ShellTool, Arguments: arguments,
		ArgumentsDigest: capability.ContentDigest(arguments),
	}
	if len(arguments) > maxRecorded {
		started.Arguments = nil
	}
	if err := e.rec.Record(ctx, started, true); err != nil {
		return "", err
	}
	if err := e.permitNow(line); err != nil {
		_ = e.finished(ctx, started, 0, nil, err) // a ledger that fails ends the session besides
		return "", err
	}
	begun := time.Now()
	limited, stop := context.WithTimeout(ctx, commandTime)
	defer stop()
	result, err := childproc.Run(limited, e.spec(line), nil)
	if err == nil {
		err = e.failure(ctx, result)
	} else {
		err = outcomeOf(ctx, err) // who gave it up says why
	}
	if recorded := e.finished(ctx, started, time.Since(begun), result.Stdout, err); err == nil {
		err = recorded
	}
	if err != nil {
		return "", err
	}
	text := strings.ToValidUTF8(string(bytes.ReplaceAll(result.Stdout, []byte{0}, nil)), "\uFFFD")
	if text = strings.TrimRight(text, "\n"); result.Truncated {
		text += fmt.Sprintf("\n[the output is cut after %d bytes]", commandOutput)
	}
	return text, nil
}

// failure is the error of a command that did not end well; nil for one that did.
func (e *expansion) failure(ctx context.Context, r childproc.Result) error {
	switch {
	case context.Cause(ctx) != nil:
		return canceled(context.Cause(ctx))
	case r.TimedOut:
		return vakerr.New(vakerr.ExpansionFailed, "a command of %s ran longer than %s and was ended", e.plan.ID, commandTime).
			WithRemedy("make it shorter, or let the model run it")
	case r.ExitCode != 0:
		return vakerr.New(vakerr.ExpansionFailed, "a command of %s failed with exit code %d", e.plan.ID, r.ExitCode).
			WithRemedy("run it by hand in the workspace, and repair it or the document")
	}
	return nil
}

func (e *expansion) finished(ctx context.Context, started ledger.CallStarted, took time.Duration, output []byte, err error) error {
	body := ledger.CallFinished{
		Turn: started.Turn, Call: started.Call, Outcome: ledger.CallOK, DurationMicros: took.Microseconds(),
		ResultBytes: int64(len(output)), ResultDigest: capability.ContentDigest(output),
	}
	if err != nil {
		failure := ledger.FailureOf(err)
		body.Outcome, body.Error = ledger.CallFailed, &failure
	}
	return e.rec.Record(context.WithoutCancel(ctx), body, false)
}

// spec says how a command is started: by a shell in the workspace, with nothing of this process's environment but the path.
func (e *expansion) spec(line string) childproc.Spec {
	env := []string{"CLAUDE_PROJECT_DIR=" + e.Workspace, "CLAUDE_SESSION_ID=" + e.call.Session}
	if home, err := os.UserHomeDir(); err == nil {
		env = append(env, "HOME="+home)
	}
	if root := e.plan.Invocation.Root; root.Path != "" {
		env = append(env, "CLAUDE_PLUGIN_ROOT="+root.Path, "CLAUDE_PLUGIN_DATA="+root.Data)
	}
	s := childproc.Spec{
		Owner: e.plan.ID.String(), Command: "/bin/sh", Args: []string{"-c", line}, Dir: e.Workspace,
		Env: childproc.Environment(env), StdoutLimit: commandOutput,
	}
	const bash = "/bin/bash"
	if e.plan.Invocation.Shell == "powershell" {
		s.Command, s.Args = "pwsh", []string{"-NoProfile", "-NonInteractive", "-Command", line}
	} else if _, err := os.Stat(bash); err == nil {
		s.Command = bash
	}
	return s
}
