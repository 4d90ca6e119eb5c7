package turn

import (
	"encoding/json"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// workshop builds the sets that tests admit from.
type workshop struct {
	t        testing.TB
	declared []capability.Declaration
}

func newWorkshop(t testing.TB) *workshop { return &workshop{t: t} }

func (w *workshop) add(kind capability.Kind, name, summary string, config capability.Config, serves ...string) *workshop {
	w.declared = append(w.declared, capability.Declaration{
		ID: capability.ID{Kind: kind, Name: name}, Origin: capability.Origin{Kind: capability.OriginWorkspace},
		Summary: summary, Serves: capability.ParseDomains(serves...), Config: config,
	})
	return w
}

func (w *workshop) tool(name string, tool capability.Tool, serves ...string) *workshop {
	if tool.InputSchema == nil {
		tool.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if tool.Description == "" {
		tool.Description = "Does " + name + ". With more to say."
	}
	return w.add(capability.KindTool, name, FirstSentence(tool.Description), &tool, serves...)
}

// core adds the tools that every host has.
func (w *workshop) core() *workshop {
	return w.tool("mcp", capability.Tool{AlwaysLoaded: true}).
		tool("skill", capability.Tool{AlwaysLoaded: true, ReadOnly: true}).
		tool("find_tools", capability.Tool{AlwaysLoaded: true, ReadOnly: true})
}

func (w *workshop) skill(name, description string) *workshop {
	return w.add(capability.KindSkill, name, description, &capability.Skill{Description: description, Body: []byte("BODY of " + name)})
}

func (w *workshop) server(name string, s capability.Server, tools ...string) *workshop {
	if tools != nil {
		o := &capability.Observation{}
		for _, t := range tools {
			o.Catalog = append(o.Catalog, capability.ObservedTool{
				Name: t, Description: "Does " + t + ". More.",
				InputSchema: json.RawMessage(`{"type":"object"}`), Definition: json.RawMessage(`{"name":"` + t + `"}`), ReadOnly: true,
			})
		}
		s.Observation = o
	}
	s.Transport = capability.TransportStdio
	return w.add(capability.KindMCP, name, "server "+name, &s)
}

func (w *workshop) hook(event, command, refusal string) *workshop {
	return w.add(capability.KindHook, event+"/"+command, "", &capability.Hook{Event: event, Command: command, Refusal: refusal})
}

func (w *workshop) command(name string) *workshop {
	return w.add(capability.KindCommand, name, "command "+name, &capability.Command{Description: "command " + name})
}

func (w *workshop) set(revoked capability.Revocations) *capability.Set {
	w.t.Helper()
	set, err := capability.NewSet(w.declared, revoked)
	if err != nil {
		w.t.Fatal(err)
	}
	return set
}

// admit admits in full-access without a channel, unless edits say otherwise.
func (w *workshop) admit(edits ...func(*AdmitInput)) *Admitted {
	w.t.Helper()
	in := AdmitInput{
		View:   &View{Snapshot: capability.Snapshot{Epoch: 7, Set: w.set(nil)}},
		Engine: engine(w.t, policy.PermissionRules{Mode: "full-access"}),
	}
	for _, edit := range edits {
		edit(&in)
	}
	return Admit(in)
}

func engine(t testing.TB, rules policy.PermissionRules) *policy.Engine {
	t.Helper()
	e, problems := policy.CompileEngine(policy.Host{}, rules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return e
}

func permissions(t testing.TB, rules policy.PermissionRules) func(*AdmitInput) {
	return func(in *AdmitInput) { in.Engine = engine(t, rules) }
}

func channel(t testing.TB, rules policy.ChannelRules) func(*AdmitInput) {
	c, problems := policy.CompileChannel("test", rules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return func(in *AdmitInput) { in.Channel = c }
}

func revoke(ids ...string) func(*AdmitInput) {
	return func(in *AdmitInput) {
		revoked := capability.Revocations{}
		for _, s := range ids {
			id, err := capability.ParseID(s)
			if err != nil {
				panic(err)
			}
			revoked[id] = "withdrawn"
		}
		in.View = &View{Snapshot: in.View.Snapshot, Revoked: revoked}
	}
}
