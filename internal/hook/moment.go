package hook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// Event is a moment in the life of a session.
type Event string

// The events.
const (
	SessionStart    Event = "session-start"     // the first turn of a session begins
	SessionEnd      Event = "session-end"       // a session is closed
	UserPrompt      Event = "user-prompt"       // a turn begins with a prompt
	PreToolUse      Event = "pre-tool-use"      // a call is about to be judged
	PostToolUse     Event = "post-tool-use"     // a call has run
	PostToolFailure Event = "post-tool-failure" // a call has run, and the tool says that it failed
	Stop            Event = "stop"              // a turn ends
)

// Events lists them.
func Events() []Event {
	return []Event{SessionStart, SessionEnd, UserPrompt, PreToolUse, PostToolUse, PostToolFailure, Stop}
}

// ParseEvent reads the name of an event; pre_tool_use is taken for pre-tool-use.
func ParseEvent(name string) (Event, error) {
	e := Event(strings.ReplaceAll(strings.TrimSpace(name), "_", "-"))
	if !slices.Contains(Events(), e) {
		names := make([]string, 0, len(Events()))
		for _, known := range Events() {
			names = append(names, string(known))
		}
		return "", fmt.Errorf("unknown event %q: the events are %s", name, strings.Join(names, ", "))
	}
	return e, nil
}

// OfTool reports whether the event is about a call, so that a hook's match applies.
func (e Event) OfTool() bool { return e == PreToolUse || e == PostToolUse || e == PostToolFailure }

// Moment is what an event of a dialect means here.
type Moment struct {
	Events []Event            // when it happens; none: never, see Idle
	Kind   policy.SubjectKind // of a tool event: it is about such calls only
	Writes bool               // of a tool event about paths: about calls that write
	Server bool               // of a tool event: about servers' tools only
	Idle   string             // why it never happens here
}

// MomentOf says what an event of a dialect means; false for a name that the dialect does not have.
func MomentOf(dialect capability.Dialect, event string) (Moment, bool) {
	if dialect == capability.DialectVAK {
		e, err := ParseEvent(event)
		return Moment{Events: []Event{e}}, err == nil
	}
	m, known := moments[dialect][event]
	return m, known
}

// EventsOf lists the events of a dialect, sorted.
func EventsOf(dialect capability.Dialect) []string {
	var all []string
	for name := range moments[dialect] {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

const (
	noSubagents  = "workers are sessions of their own here and have the hooks of sessions"
	noCompaction = "the host keeps the conversation and compacts it"
	noModel      = "the host asks the model"
	noDialog     = "this runtime shows nothing to anybody; approvals are listed and answered through the API"
	noFiles      = "files are followed by reconciling, which asks nobody"
	noTasks      = "there are no tasks, teams or worktrees here"
	noForm       = "servers' questions to the user are answered by the host"
)

func at(events ...Event) Moment { return Moment{Events: events} }
func never(why string) Moment   { return Moment{Idle: why} }

var moments = map[capability.Dialect]map[string]Moment{
	capability.DialectClaude: claudeMoments,
	capability.DialectCodex:  claudeMoments,
	capability.DialectGemini: {
		"BeforeTool": at(PreToolUse), "AfterTool": at(PostToolUse, PostToolFailure), "BeforeAgent": at(UserPrompt), "AfterAgent": at(Stop),
		"SessionStart": at(SessionStart), "SessionEnd": at(SessionEnd),
		"BeforeModel": never(noModel), "AfterModel": never(noModel), "BeforeToolSelection": never(noModel),
		"Notification": never(noDialog), "PreCompress": never(noCompaction),
	},
	capability.DialectCursor: {
		"preToolUse": at(PreToolUse), "postToolUse": at(PostToolUse), "postToolUseFailure": at(PostToolFailure),
		"beforeShellExecution": {Events: []Event{PreToolUse}, Kind: policy.SubjectCommand},
		"afterShellExecution":  {Events: []Event{PostToolUse, PostToolFailure}, Kind: policy.SubjectCommand},
		"beforeMCPExecution":   {Events: []Event{PreToolUse}, Server: true},
		"afterMCPExecution":    {Events: []Event{PostToolUse, PostToolFailure}, Server: true},
		"beforeReadFile":       {Events: []Event{PreToolUse}, Kind: policy.SubjectPath},
		"afterFileEdit":        {Events: []Event{PostToolUse}, Kind: policy.SubjectPath, Writes: true},
		"beforeSubmitPrompt":   at(UserPrompt), "stop": at(Stop), "sessionStart": at(SessionStart), "sessionEnd": at(SessionEnd),
		"subagentStart": never(noSubagents), "subagentStop": never(noSubagents), "preCompact": never(noCompaction),
		"beforeTabFileRead": never(noForeignEditor), "afterTabFileEdit": never(noForeignEditor),
		"afterAgentResponse": never(noModel), "afterAgentThought": never(noModel), "workspaceOpen": never(noForeignEditor),
	},
}

const noForeignEditor = "only the editor it was written for has this moment"

var claudeMoments = map[string]Moment{
	"SessionStart": at(SessionStart), "SessionEnd": at(SessionEnd), "UserPromptSubmit": at(UserPrompt), "PreToolUse": at(PreToolUse),
	"PostToolUse": at(PostToolUse), "PostToolUseFailure": at(PostToolFailure), "Stop": at(Stop),

	"Setup": never("there is no set-up run here"), "InstructionsLoaded": never(noModel),
	"UserPromptExpansion": never("a prompt is expanded in one step; use UserPromptSubmit"), "MessageDisplay": never(noDialog),
	"PermissionRequest": never(noDialog), "PermissionDenied": never(noDialog), "Notification": never(noDialog),
	"PostToolBatch": never("calls of a turn are not gathered into batches"),
	"SubagentStart": never(noSubagents), "SubagentStop": never(noSubagents), "TeammateIdle": never(noTasks),
	"TaskCreated": never(noTasks), "TaskCompleted": never(noTasks), "StopFailure": never(noModel),
	"ConfigChange": never(noFiles), "CwdChanged": never(noFiles), "DirectoryAdded": never(noFiles), "FileChanged": never(noFiles),
	"WorktreeCreate": never(noTasks), "WorktreeRemove": never(noTasks), "PreCompact": never(noCompaction), "PostCompact": never(noCompaction),
	"Elicitation": never(noForm), "ElicitationResult": never(noForm),
}
