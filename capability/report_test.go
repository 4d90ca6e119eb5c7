package capability

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func server(failure string, transport Transport) func(*Declaration) {
	return func(d *Declaration) {
		s := &Server{Transport: transport}
		if failure != "" {
			s.Observation = &Observation{Failure: failure}
		}
		d.Config = s
	}
}

func reportInput(t testing.TB) ReportInput {
	return ReportInput{
		Tenant: "default",
		Snapshot: Snapshot{Epoch: 4, Set: newSet(t, Revocations{id("skill:old"): "replaced"},
			declare("tool:read", func(d *Declaration) { d.Serves, d.Source = ParseDomains("fs"), "tools/read.toml" }),
			declare("tool:write"), declare("skill:old"), declare("mcp:up", server("", TransportStdio)),
			declare("mcp:down", server("no such command", TransportStdio)), declare("mcp:away", server("no route", TransportHTTP)),
			declare("hook:stop/x", func(d *Declaration) {
				d.Origin = Origin{Kind: OriginPlugin, Plugin: "p", Scope: "user"}
			}),
			declare("hook:pre-tool-use/y", func(d *Declaration) { d.Config = &Hook{Refusal: "timeout cannot be read"} }),
			declare("command:ship"))},
		Revoked: Revocations{id("tool:write"): "incident 7", id("command:ship"): "freeze"},
		Loop:    LoopHealth{Epoch: 4},
	}
}

// V8, V110, V114, V115, V116: every capability is a row with its fields, status words and remedy.
func TestReportRows(t *testing.T) {
	r := NewReport(reportInput(t))
	type brief struct{ Status, Reason, Remedy string }
	want := map[string]brief{
		"tool:read":           {Status: "ready"},
		"tool:write":          {"removed: incident 7", "incident 7", "if it should be used again: vak-actors restore tool:write"},
		"skill:old":           {"removed: replaced", "replaced", "if it should be used again: vak-actors restore skill:old"},
		"mcp:up":              {Status: "ready"},
		"mcp:down":            {"ready (last attempt failed: no such command)", "no such command", "check command, args and env of [mcp.servers.down]"},
		"mcp:away":            {"ready (last attempt failed: no route)", "no route", "check url and headers of [mcp.servers.away]"},
		"hook:stop/x":         {Status: "ready"},
		"hook:pre-tool-use/y": {"blocks every tool call: timeout cannot be read", "timeout cannot be read", "repair the hook's definition, or remove it"},
		"command:ship":        {"removed: freeze", "freeze", "if it should be used again: vak-actors restore command:ship"},
	}
	got := map[string]brief{}
	for _, row := range r.Capabilities {
		got[row.ID] = brief{row.Status, row.Reason, row.Remedy}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	first, err := json.Marshal(r.Capabilities[0])
	if err != nil {
		t.Fatal(err)
	}
	wantJSON := `{"id":"tool:read","kind":"tool","name":"read","origin":"workspace","summary":"about tool:read","serves":["filesystem"],"usable":true,"status":"ready","source":"tools/read.toml","digest":"17fc74a4542557d180da5cb814ff55678fb3e1bfb734f18f673be4fd4964b78a"}`
	if string(first) != wantJSON {
		t.Errorf("row in JSON: %s", first)
	}
}

// V112, V117: the summary counts the effective set, plugins' contributions too.
func TestReportSummary(t *testing.T) {
	if got, want := NewReport(reportInput(t)).Summary, "epoch 4: tool 1/2, skill 0/1, mcp 3/3, hook 1/2, command 0/1"; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
}

// V118, V119: the model is told what it must do without, and nothing of hooks, commands and servers that may be tried.
func TestReportStanding(t *testing.T) {
	r := NewReport(reportInput(t))
	want := "These capabilities cannot be used now. Do not pretend to use them and do not put something else in their place without saying so:\n" +
		"- tool:write: incident 7\n- skill:old: replaced"
	if diff := cmp.Diff(want, r.Standing(nil)); diff != "" {
		t.Errorf("standing (-want +got):\n%s", diff)
	}
	// C10: a reader learns only of what it may know.
	if got := r.Standing(func(i ID) bool { return i.Kind == KindSkill }); strings.Contains(got, "tool:write") || !strings.Contains(got, "skill:old") {
		t.Errorf("standing for one who sees skills: %s", got)
	}
	well := NewReport(ReportInput{Snapshot: Snapshot{Set: newSet(t, nil, declare("tool:a"), declare("mcp:b", server("down", TransportStdio)))}})
	if well.Standing(nil) != "" {
		t.Errorf("nothing is wrong, and the model is told %q", well.Standing(nil))
	}
}

// V111, V113: whatever a model is told of, doctor finds too; doctor is green only when nothing is wrong.
func TestWhatTheModelHearsDoctorFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := worlds(t, "set")
		revoked := Revocations{}
		for _, text := range []string{"tool:a", "skill:a", "hook:stop/a"} {
			if rapid.Bool().Draw(t, text) {
				revoked[id(text)] = rapid.SampledFrom([]string{"", "why"}).Draw(t, "reason")
			}
		}
		r := NewReport(ReportInput{Snapshot: Snapshot{Set: set}, Revoked: revoked})
		findings := r.Findings()
		for line := range strings.Lines(r.Standing(nil)) {
			subject, isRow := strings.CutPrefix(strings.TrimSpace(line), "- ")
			if isRow && !slices.ContainsFunc(findings, func(f Finding) bool { return strings.HasPrefix(subject, f.Subject+":") }) {
				t.Fatalf("the model is told %q and doctor finds %v", subject, findings)
			}
		}
		for _, row := range r.Capabilities {
			found := slices.ContainsFunc(findings, func(f Finding) bool { return f.Subject == row.ID })
			if found == row.Usable {
				t.Fatalf("%s is usable %v and found %v", row.ID, row.Usable, found)
			}
		}
	})
}

// V80, V113: problems of files, a failing loop and failing parts are findings.
func TestFindings(t *testing.T) {
	if f := (&Report{}).Findings(); len(f) != 0 {
		t.Errorf("an empty world has findings: %v", f)
	}
	in := ReportInput{
		Snapshot: Snapshot{Set: newSet(t, nil, declare("mcp:down", server("no such command", TransportStdio)))},
		Problems: []Problem{{Path: "b.md", Message: "m2"}, {Path: "a.md", Line: 3, Message: "m1", Hint: "h"}},
		Loop:     LoopHealth{Failing: true, FailedSince: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), LastError: "disk"},
		Actors:   []Health{{Name: "pool", State: "gave-up", Restarts: 5, LastError: "boom"}},
	}
	r := NewReport(in)
	want := []Finding{
		{"mcp:down", "ready (last attempt failed: no such command)", "check command, args and env of [mcp.servers.down]"},
		{"a.md:3", "m1", "h"},
		{"b.md", "m2", ""},
		{"reconcile loop", "has been failing since 2026-01-02T03:04:05Z: disk", "capabilities may be out of date until it succeeds"},
		{"pool", "gave-up after 5 restarts: boom", "see the daemon's log"},
	}
	if diff := cmp.Diff(want, r.Findings()); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if in.Problems[0].Path != "b.md" {
		t.Error("the report sorted its input")
	}
}

// V168: a hook's row tells how often it was asked, and that it guards nothing while its last delivery failed; one that is
// never asked here says why, and is nobody's fault.
func TestHookRows(t *testing.T) {
	set, err := NewSet([]Declaration{
		{ID: ID{KindHook, "fails"}, Config: &Hook{Event: "pre-tool-use"}},
		{ID: ID{KindHook, "idle"}, Config: &Hook{Event: "Notification", Idle: "there is no such moment"}},
		{ID: ID{KindHook, "works"}, Config: &Hook{Event: "pre-tool-use"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReport(ReportInput{Snapshot: Snapshot{Set: set}, Hooks: map[string]Deliveries{
		"fails": {Asked: 3, Failed: 2, LastFailure: "it took longer than 1s"}, "works": {Asked: 5, Blocked: 1},
	}})
	var got []string
	for _, row := range r.Capabilities {
		asked := uint64(0)
		if row.Deliveries != nil {
			asked = row.Deliveries.Asked
		}
		got = append(got, fmt.Sprintf("%s %t %s %d", row.Name, row.Usable, row.Status, asked))
	}
	want := []string{"fails true ready (last delivery failed: it took longer than 1s) 3", "idle false idle: there is no such moment 0", "works true ready 5"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if f := r.Findings(); len(f) != 1 || f[0].Subject != "hook:fails" || f[0].Remedy == "" {
		t.Errorf("findings %+v", f)
	}
}
