package capability

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Row is one capability as all three audiences of the report see it.
type Row struct {
	ID      string   `json:"id"`
	Kind    Kind     `json:"kind"`
	Name    string   `json:"name"`
	Origin  string   `json:"origin"`
	Summary string   `json:"summary"`
	Serves  []Domain `json:"serves"`
	Usable  bool     `json:"usable"`
	Status  string   `json:"status"` // ready, ready (last attempt failed: ...), cannot be started: ..., held: ... or removed: ...
	Reason  string   `json:"reason,omitempty"`
	Remedy  string   `json:"remedy,omitempty"`
	Source  string   `json:"source,omitempty"`
	Digest  string   `json:"digest"` // see SurfaceDigest

	Idle       bool        `json:"idle,omitempty"`       // a hook that is never asked here; no fault of anybody
	Deliveries *Deliveries `json:"deliveries,omitempty"` // of a hook that was asked since the daemon started
}

// Deliveries counts how often a hook was asked since the daemon started.
type Deliveries struct {
	Asked       uint64 `json:"asked"`
	Blocked     uint64 `json:"blocked"`
	Failed      uint64 `json:"failed"`                 // gave no opinion of its own: did not start, took too long, was not understood
	LastFailure string `json:"last_failure,omitempty"` // empty: the last delivery was none
}

// LoopHealth is what the reconcile loop says of itself.
type LoopHealth struct {
	LastRun     time.Time `json:"last_run"`              // end of the last pass; zero: none yet
	LastChange  time.Time `json:"last_change"`           // end of the last pass that moved the epoch
	Epoch       Epoch     `json:"epoch"`                 // epoch after the last pass
	Passes      uint64    `json:"passes"`                // passes since start
	Failing     bool      `json:"failing"`               // the last pass could not read the world
	FailedSince time.Time `json:"failed_since,omitzero"` // begin of the current row of failures
	LastError   string    `json:"last_error,omitempty"`  // why; empty while healthy
	Watching    string    `json:"watching,omitempty"`    // notify or polling
}

// Report is the one value that the model's standing section, doctor and the console render.
type Report struct {
	Tenant       string     `json:"tenant"`
	Epoch        Epoch      `json:"epoch"`
	Digest       string     `json:"digest"`
	Summary      string     `json:"summary"`
	Loop         LoopHealth `json:"loop"`
	Capabilities []Row      `json:"capabilities"`
	Problems     []Problem  `json:"problems"`
	Shadowed     []Shadow   `json:"shadowed"` // declared and not used, because another of the name comes first
	Actors       []Health   `json:"actors"`
	Asking       int        `json:"asking"` // calls that wait for an approval
}

// Health is what is said of a part that does not work: by a supervised actor's supervisor, or of the ledger.
type Health struct {
	Name        string    `json:"name"`
	State       string    `json:"state"` // restarting, gave-up or failing since ...
	Restarts    int       `json:"restarts"`
	LastError   string    `json:"last_error,omitempty"`
	NextAttempt time.Time `json:"next_attempt,omitzero"`
}

// ReportInput is everything a report is made of.
type ReportInput struct {
	Tenant   string
	Snapshot Snapshot
	Revoked  Revocations // in force now; they may be newer than the snapshot
	Loop     LoopHealth
	Problems []Problem
	Shadowed []Shadow
	Actors   []Health
	Asking   int                   // calls that wait for an approval
	Hooks    map[string]Deliveries // by name
}

// NewReport renders the input. It is a pure function: equal inputs give equal reports.
func NewReport(in ReportInput) Report {
	r := Report{
		Tenant: in.Tenant, Epoch: in.Snapshot.Epoch, Digest: in.Snapshot.Set.Digest(), Loop: in.Loop, Asking: in.Asking,
		Capabilities: make([]Row, 0, in.Snapshot.Set.Len()),
		Problems:     slices.Clone(in.Problems), Shadowed: append([]Shadow{}, in.Shadowed...), Actors: slices.Clone(in.Actors),
	}
	for c := range in.Snapshot.Set.All() {
		row := newRow(c, in.Revoked)
		if d, asked := in.Hooks[c.ID.Name]; asked && c.ID.Kind == KindHook {
			row.deliver(d)
		}
		r.Capabilities = append(r.Capabilities, row)
	}
	SortProblems(r.Problems)
	r.Summary = r.summary()
	return r
}

func newRow(c *Capability, revoked Revocations) Row {
	row := Row{
		ID: c.ID.String(), Kind: c.ID.Kind, Name: c.ID.Name, Origin: c.Origin.Label(), Summary: c.Summary,
		Serves: slices.Clone(c.Serves), Source: c.Source, Digest: c.SurfaceDigest(), Usable: c.Usable(), Reason: c.Resolution.Reason,
	}
	if row.Serves == nil {
		row.Serves = []Domain{}
	}
	reason, retired := revoked[c.ID]
	switch {
	case retired:
		row.Usable, row.Reason = false, reason
	case c.Resolution.Retired:
		retired = true
	}
	row.Status = "ready"
	switch hook, isHook := c.Config.(*Hook); {
	case retired:
		row.Status = "removed: " + row.Reason
		row.Remedy = fmt.Sprintf("if it should be used again: vak-actors restore %s", c.ID)
	case c.Hold != nil:
		row.Reason, row.Remedy = c.Hold.Reason, c.Hold.Remedy
		row.Status = "held: " + row.Reason
	case isHook && hook.Refusal != "":
		row.Usable, row.Reason = false, hook.Refusal
		row.Status = "blocks every tool call: " + hook.Refusal
		row.Remedy = "repair the hook's definition, or remove it"
	case isHook && hook.Idle != "":
		row.Usable, row.Idle = false, true
		row.Status = "idle: " + hook.Idle
	default:
		server, ok := c.Config.(*Server)
		if ok && server.Unready != "" {
			row.Usable, row.Reason, row.Remedy = false, server.Unready, server.Remedy
			row.Status = "cannot be started: " + row.Reason
		} else if ok && server.Observation != nil && server.Observation.Failure != "" {
			row.Reason = server.Observation.Failure
			row.Status = "ready (last attempt failed: " + row.Reason + ")"
			row.Remedy = serverRemedy(c.ID.Name, server)
		}
	}
	return row
}

// deliver adds how often a hook was asked. One whose last delivery failed guards nothing.
func (r *Row) deliver(d Deliveries) {
	r.Deliveries = &d
	if d.LastFailure != "" && r.Usable {
		r.Reason = d.LastFailure
		r.Status = "ready (last delivery failed: " + d.LastFailure + ")"
		r.Remedy = "see that its program runs, and in time"
	}
}

func serverRemedy(name string, s *Server) string {
	entry := "[mcp.servers." + name + "]"
	if s.Transport != TransportStdio {
		return "check url and headers of " + entry
	}
	return "check command, args and env of " + entry
}

// summary names the epoch and usable/total per kind.
func (r *Report) summary() string {
	var usable, total [len(kindNames)]int
	for _, row := range r.Capabilities {
		total[row.Kind]++
		if row.Usable {
			usable[row.Kind]++
		}
	}
	parts := make([]string, 0, len(kindNames))
	for _, k := range Kinds() {
		parts = append(parts, fmt.Sprintf("%s %d/%d", k, usable[k], total[k]))
	}
	return fmt.Sprintf("epoch %d: %s", r.Epoch, strings.Join(parts, ", "))
}

// Standing is the section of a model's prompt that names what it must do without; empty when nothing is wrong. Hooks
// and commands are no tools of the model and are left out, and so is a server that only failed last time: it can be
// called. shown says which ids this reader may know of; nil shows all.
func (r *Report) Standing(shown func(ID) bool) string {
	var lines []string
	for _, row := range r.Capabilities {
		if row.Usable || row.Kind == KindHook || row.Kind == KindCommand {
			continue
		}
		if shown != nil && !shown(ID{row.Kind, row.Name}) {
			continue
		}
		lines = append(lines, fmt.Sprintf("- %s: %s", row.ID, row.Reason))
	}
	if len(lines) == 0 {
		return ""
	}
	return "These capabilities cannot be used now. Do not pretend to use them and do not put something else in their " +
		"place without saying so:\n" + strings.Join(lines, "\n")
}

// Finding is one thing that doctor reports.
type Finding struct {
	Subject string `json:"subject"` // an id, a path or the name of a part
	Problem string `json:"problem"`
	Remedy  string `json:"remedy,omitempty"`
}

// Findings is what keeps doctor from being green: everything a model is told about, every problem of a file, a loop that
// fails, a part that is being restarted. Warnings of readers are findings too; doctor is where they are seen.
func (r *Report) Findings() []Finding {
	var all []Finding
	for _, row := range r.Capabilities {
		if !row.Idle && (!row.Usable || row.Reason != "") {
			all = append(all, Finding{row.ID, row.Status, row.Remedy})
		}
	}
	for _, p := range r.Problems {
		subject := p.Path
		if p.Line > 0 {
			subject = fmt.Sprintf("%s:%d", p.Path, p.Line)
		}
		all = append(all, Finding{subject, p.Message, p.Hint})
	}
	if r.Loop.Failing {
		all = append(all, Finding{"reconcile loop", fmt.Sprintf("has been failing since %s: %s",
			r.Loop.FailedSince.UTC().Format(time.RFC3339), r.Loop.LastError), "capabilities may be out of date until it succeeds"})
	}
	for _, h := range r.Actors {
		state := h.State
		if h.Restarts > 0 {
			state = fmt.Sprintf("%s after %d restarts", state, h.Restarts)
		}
		all = append(all, Finding{h.Name, state + ": " + h.LastError, "see the daemon's log"})
	}
	return all
}
