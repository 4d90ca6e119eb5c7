package turn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// The actions of the mcp tool.
const (
	ActionList = "list" // without a server: the servers; with one: its catalog
	ActionCall = "call"
	// ActionRequest is one of Requests, named as the tool, with its params as arguments.
	ActionRequest = "request"
)

// Requests are what may be asked of a server beside its tools. Each reads only. Rules and filters know them as tools of
// the server by these names.
var Requests = []string{"resources/read", "resources/subscribe", "resources/unsubscribe", "prompts/get", "completion/complete"}

// requestTool stands for a request where a tool of a server is judged.
func requestTool(method string) *capability.ObservedTool {
	return &capability.ObservedTool{Name: method, InputSchema: json.RawMessage(`{"type":"object"}`), ReadOnly: true}
}

// Target is what a model's call means.
type Target struct {
	Tool       *capability.Capability // the tool that runs: the broker for a server's tool
	Definition *capability.Tool       // Tool as this turn offers it; Arguments are checked against its schema
	IDs        []capability.ID        // what the gate checks: Tool, and the server or skill that is named
	Arguments  json.RawMessage        // of Tool, after a repair; always a JSON object

	// For the broker, and to be used instead of reading Arguments again: the server named, and for the action call its tool with its own arguments. Observed is nil
	// while the server's catalog is not known.
	Server          string
	ServerTool      string
	Observed        *capability.ObservedTool
	ServerArguments json.RawMessage

	Skill *capability.Capability // for the skill tool: what it loads

	// Repaired is the name as the model wrote it, where that was not the name of a tool but an address that was
	// turned into a call of the broker. The ledger records it.
	Repaired string
}

// Requests is what the permission engine is asked about this call, for DecideAll: one request for each of its subjects,
// one at least. Where the subject is a path it is as the model wrote it; the caller makes it relative to the workspace
// first. They are about these Arguments; after a hook rewrote them, Resolve must be asked again.
func (t Target) Requests() []policy.Request {
	if t.ServerTool != "" {
		r := ServerRequest(t.Server, t.ServerTool, t.Observed)
		r.Arguments = string(t.ServerArguments)
		return []policy.Request{r}
	}
	r := policy.Request{
		Arguments: string(t.Arguments),
		Tool:      t.Tool.ID.Name, ReadOnly: t.Definition.ReadOnly || t.Tool.ID.Name == policy.BrokerTool,
		Destructive: t.Definition.Destructive,
	}
	if t.Skill != nil {
		r.Kind, r.Subject = policy.SubjectName, t.Skill.ID.Name
		return []policy.Request{r}
	}
	var all []policy.Request
	for _, s := range policy.Subjects(t.Arguments) {
		r.Kind, r.Subject = s.Kind, s.Text
		all = append(all, r)
	}
	if all == nil {
		return []policy.Request{r}
	}
	return all
}

// Removed tells in which epoch a capability was removed that older epochs had. Nil: nothing is known of it.
type Removed func(capability.ID) (capability.Epoch, bool)

// Resolve turns the name and arguments a model sent into a target among what was admitted. A name that is not a tool's
// but can only mean a server's tool (its bare or exposed name, server__tool, mcp__server__tool or server/tool) is
// repaired into a call of the broker. Everything else is an error value, and nothing has happened yet:
// invalid_arguments, unknown_tool, unknown_server, unknown_action, wrong_kind, capability_not_admitted,
// capability_revoked, capability_removed or permission_denied.
func Resolve(a *Admitted, name string, arguments json.RawMessage, removed Removed) (Target, error) {
	r := resolver{a, removed}
	t, err := r.resolve(name, arguments)
	if err != nil {
		return Target{}, err
	}
	return t, nil
}

// ResolveRequest is Resolve for one of Requests, whose params are given, to a server; for an empty one to the server that
// the params tell.
func ResolveRequest(a *Admitted, server, method string, params json.RawMessage, removed Removed) (Target, error) {
	r := resolver{a, removed}
	object, err := parseObject(method, params)
	if err != nil {
		return Target{}, err
	}
	if server == "" {
		if server, object, err = a.route(method, object); err != nil {
			return Target{}, err
		}
	}
	t, err := r.repair(server, server, method, ActionRequest, object)
	if err != nil {
		return Target{}, err
	}
	t.Repaired = ""
	return t, nil
}

type resolver struct {
	a       *Admitted
	removed Removed
}

func (r resolver) resolve(name string, arguments json.RawMessage) (Target, *vakerr.Error) {
	object, err := parseObject(name, arguments)
	if err != nil {
		return Target{}, err
	}
	if c, ok := r.a.Tool(name); ok {
		return r.tool(c, object)
	}
	if err := r.missing(capability.ID{Kind: capability.KindTool, Name: name}); err != nil {
		return Target{}, err
	}
	if server, tool, ok := r.address(name); ok {
		return r.repair(name, server, tool, ActionCall, object)
	}
	return Target{}, r.noTool(name)
}

// maxNameShown bounds how much of a wrong name is repeated, in bytes.
const maxNameShown = 80

func shown(name string) string {
	return fmt.Sprintf("%q", name[:min(len(name), maxNameShown)])
}

// parseObject accepts nothing, null and any JSON object.
func parseObject(name string, arguments json.RawMessage) (json.RawMessage, *vakerr.Error) {
	text := bytes.TrimSpace(arguments)
	if len(text) == 0 || string(text) == "null" {
		return json.RawMessage(`{}`), nil
	}
	// JSON of another encoding than UTF-8 is none; what reads it would put other characters in its place.
	if text[0] != '{' || !json.Valid(text) || !utf8.Valid(text) {
		return nil, vakerr.New(vakerr.InvalidArguments, "the arguments of %s are no JSON object", shown(name)).
			WithRemedy("send an object that fits the tool's input schema, {} for none")
	}
	return text, nil
}

func (r resolver) tool(c *capability.Capability, arguments json.RawMessage) (Target, *vakerr.Error) {
	if err := distinctKeys(c.ID.Name, arguments); err != nil {
		return Target{}, err
	}
	t := Target{Tool: c, Definition: c.Config.(*capability.Tool), IDs: []capability.ID{c.ID}, Arguments: arguments}
	switch c.ID.Name {
	case policy.BrokerTool:
		return r.broker(t)
	case policy.SkillTool:
		return r.skill(t)
	}
	return t, nil
}

// broker reads the arguments of the mcp tool.
func (r resolver) broker(t Target) (Target, *vakerr.Error) {
	var in struct {
		Action    string          `json:"action"`
		Server    string          `json:"server"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(t.Arguments, &in) != nil {
		return t, vakerr.New(vakerr.InvalidArguments, "action, server and tool of mcp must be strings").WithRemedy(brokerUse)
	}
	switch {
	case in.Action != ActionList && in.Action != ActionCall && in.Action != ActionRequest:
		return t, vakerr.New(vakerr.UnknownAction, "mcp has no action %s", shown(in.Action)).WithRemedy(brokerUse)
	case in.Action != ActionList && (in.Server == "" || in.Tool == ""):
		return t, vakerr.New(vakerr.InvalidArguments, "an mcp call names a server and a tool").WithRemedy(brokerUse)
	case in.Action == ActionRequest && !slices.Contains(Requests, in.Tool):
		return t, vakerr.New(vakerr.UnknownAction, "mcp passes no request %s on", shown(in.Tool)).
			WithRemedy("use one of %s", strings.Join(Requests, ", "))
	case in.Server == "":
		return t, nil
	}
	server, ok := r.a.Server(in.Server)
	if !ok {
		return t, r.noServer(in.Server)
	}
	t.Server = in.Server
	t.IDs = append(t.IDs, server.ID)
	if in.Action == ActionList {
		return t, nil
	}
	if in.Action == ActionRequest {
		return r.request(t, in.Tool, in.Arguments)
	}
	return r.serverTool(t, in.Tool, in.Arguments)
}

func (r resolver) request(t Target, method string, params json.RawMessage) (Target, *vakerr.Error) {
	object, err := parseObject(method, params)
	if err != nil {
		return t, err
	}
	if !r.a.AllowsServerTool(t.Server, method) {
		return t, r.noServerTool(t.Server, method)
	}
	t.ServerTool, t.ServerArguments, t.Observed = method, object, requestTool(method)
	for _, key := range []string{"_meta", "inputResponses", "requestState"} { // of a connection, and none of a model's business
		if bytes.Contains(object, []byte(`"`+key+`"`)) {
			return t, vakerr.New(vakerr.InvalidArguments, "the params of %s may not hold %s", method, key).WithRemedy("leave it out")
		}
	}
	return t, nil
}

const brokerUse = `use {"action":"list"}, {"action":"list","server":S}, {"action":"call","server":S,"tool":T,"arguments":{…}} or ` +
	`{"action":"request","server":S,"tool":"resources/read","arguments":{"uri":U}}`

func (r resolver) serverTool(t Target, tool string, arguments json.RawMessage) (Target, *vakerr.Error) {
	inner, err := parseObject(tool, arguments)
	if err != nil {
		return t, err
	}
	c, _ := r.a.Server(t.Server)
	observation := c.Config.(*capability.Server).Observation
	t.ServerTool, t.ServerArguments, t.Observed = tool, inner, observation.Tool(tool)
	if t.Observed != nil && t.Observed.Hold != nil {
		return t, vakerr.New(vakerr.CapabilityHeld, "%s/%s is held: %s", t.Server, tool, t.Observed.Hold.Reason).WithRemedy("%s", t.Observed.Hold.Remedy)
	}
	known := observation != nil && observation.Catalog != nil
	if !r.a.AllowsServerTool(t.Server, tool) || known && t.Observed == nil {
		return t, r.noServerTool(t.Server, tool)
	}
	return t, nil
}

// skill reads the arguments of the skill tool.
func (r resolver) skill(t Target) (Target, *vakerr.Error) {
	if r.a.skillTool != nil {
		t.Definition = r.a.skillTool
	}
	var in struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(t.Arguments, &in) != nil || in.Name == "" {
		return t, vakerr.New(vakerr.InvalidArguments, "skill takes the name of one skill").
			WithRemedy(`use {"name":"…"} with one of: %s`, phrase.List(r.a.SkillNames(), maxListed))
	}
	id := capability.ID{Kind: capability.KindSkill, Name: in.Name}
	c, ok := r.a.Skill(in.Name)
	if !ok {
		if p, broken := r.a.Broken(id); broken {
			return t, op.Broken(id, p)
		}
		if several := r.a.Ambiguous(id); several != nil {
			return t, op.Ambiguous(id, several)
		}
		if err := r.missing(id); err != nil {
			return t, err
		}
		return t, vakerr.New(vakerr.CapabilityNotAdmitted, "there is no skill %s here", shown(in.Name)).
			WithRemedy("the skills are: %s", phrase.List(r.a.SkillNames(), maxListed))
	}
	if c.Config.(*capability.Skill).DisableModelInvocation {
		return t, vakerr.New(vakerr.CapabilityNotAdmitted, "only the user may load the skill %s", shown(in.Name)).
			WithRemedy("ask the user to type /skill:%s", in.Name)
	}
	if c.ID != id { // the name that a plugin has for it
		t.Arguments, t.Repaired = encode(map[string]any{"name": c.ID.Name}), in.Name
	}
	t.Skill = c
	t.IDs = append(t.IDs, c.ID)
	return t, nil
}

// repair turns an address into a call of the broker. The broker runs even where it is host-only and so hidden from an
// MCP client, which calls the tools of servers by their exposed names; it does not run where policy took it away.
func (r resolver) repair(name, server, tool, action string, arguments json.RawMessage) (Target, *vakerr.Error) {
	broker, ok := r.routable()
	if !ok {
		return Target{}, r.noTool(name)
	}
	call := encode(map[string]any{"action": action, "server": server, "tool": tool, "arguments": arguments})
	t, refused := r.tool(broker, call)
	t.Repaired = name
	return t, refused
}

func (r resolver) routable() (*capability.Capability, bool) {
	id := capability.ID{Kind: capability.KindTool, Name: policy.BrokerTool}
	if c, ok := r.a.Get(id); ok {
		return c, true
	}
	c, ok := r.a.Set.Get(id)
	return c, ok && r.a.hostOnly(c) && r.a.Shows(id) && r.a.reachable(c)
}

// address takes a name apart that means a server's tool. Only servers this caller may know of are tried, so that the
// name of a hidden one stays unknown; with several, the longest server name wins.
func (r resolver) address(name string) (server, tool string, ok bool) {
	if e, found := r.a.ByExposedName(name); found {
		return e.Server, e.Tool.Name, true
	}
	if s, found := r.a.ToolIndex[name]; found {
		return s, name, true
	}
	rest := strings.TrimPrefix(name, policy.BrokerTool+exposedSeparator)
	for c := range r.a.Set.OfKind(capability.KindMCP) {
		after, found := strings.CutPrefix(rest, c.ID.Name)
		if !found || len(c.ID.Name) <= len(server) || !r.a.Shows(c.ID) {
			continue
		}
		for _, separator := range []string{exposedSeparator, "/"} {
			if t, found := strings.CutPrefix(after, separator); found && t != "" {
				server, tool, ok = c.ID.Name, t, true
			}
		}
	}
	return server, tool, ok
}
