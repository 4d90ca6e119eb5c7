package builtin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/schema"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const maxListed = 60 // names in an error

// brokerServes is what a server serves that does not say.
var brokerServes = capability.ParseDomains(string(capability.LiveData), string(capability.Web))

// retrieving are the domains whose use brings something from outside into a conversation.
var retrieving = brokerServes

// broker calls the tools of servers.
type broker struct {
	servers Servers
	schemas *schema.Cache
}

func mcpOp(b *broker) op.Op {
	return op.Op{Run: b.run, Declaration: declaration("mcp",
		"Calls a tool of an MCP server, or lists what there is.",
		"action list without server names the servers and starts none; with server it lists that server's tools with their schemas, "+
			"with tool, a name or a glob, only those. "+
			"action call needs server, tool and arguments. "+
			"action request needs the same, with tool one of resources/read, prompts/get or completion/complete and arguments its params.",
		// No enum for action: an unknown one has an error of its own.
		`{"type":"object","additionalProperties":false,"required":["action"],"properties":{
			"action":{"type":"string","description":"list, call or request"},
			"server":{"type":"string"},
			"tool":{"type":"string"},
			"arguments":{"type":"object","description":"What the tool's input schema asks for."}}}`,
		brokerServes, capability.Tool{AlwaysLoaded: true},
	)}
}

// brokerCall is the arguments of mcp.
type brokerCall struct {
	Action    string          `json:"action"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

func (b *broker) run(ctx context.Context, c op.Call) (op.Result, error) {
	var args brokerCall
	if err := op.Decode(c.Arguments, &args); err != nil {
		return op.Result{}, err
	}
	switch args.Action {
	case "list":
		if args.Server == "" {
			return op.Text(namesOf(c.Bound)), nil
		}
		return b.list(ctx, c, args.Server, args.Tool)
	case "call":
		return b.call(ctx, c, args)
	case "request":
		return b.request(ctx, c, args)
	}
	return op.Result{}, vakerr.New(vakerr.UnknownAction, "mcp has no such action").WithRemedy("use list, call or request")
}

// namesOf lists the servers by name and starts nothing.
func namesOf(b op.Bound) string {
	names := b.ServerNames()
	if len(names) == 0 {
		return "There are no servers."
	}
	return strings.Join(names, "\n")
}

func admitted(b op.Bound, server string) (*capability.Capability, error) {
	if server == "" {
		return nil, vakerr.New(vakerr.InvalidArguments, "server is missing").
			WithRemedy("name one of the servers: %s", phrase.List(b.ServerNames(), maxListed))
	}
	if c, ok := b.Server(server); ok {
		return c, nil
	}
	return nil, vakerr.New(vakerr.UnknownServer, "there is no server of that name in this turn").
		WithRemedy("name one of the servers: %s", phrase.List(b.ServerNames(), maxListed))
}

// catalog asks the server for its tools and keeps those that this turn may call.
func (b *broker) catalog(ctx context.Context, c op.Call, server string) ([]*capability.ObservedTool, error) {
	if _, err := admitted(c.Bound, server); err != nil {
		return nil, err
	}
	all, err := b.servers.List(ctx, c, server)
	if err != nil {
		return nil, err
	}
	kept := make([]*capability.ObservedTool, 0, len(all))
	for _, tool := range all {
		if tool = c.Approved(server, tool); c.Bound.AllowsServerTool(server, tool.Name) {
			kept = append(kept, &tool)
		}
	}
	return kept, nil
}

func (b *broker) call(ctx context.Context, c op.Call, args brokerCall) (op.Result, error) {
	server, err := admitted(c.Bound, args.Server)
	if err != nil {
		return op.Result{}, err
	}
	if args.Tool == "" {
		return op.Result{}, vakerr.New(vakerr.InvalidArguments, "tool is missing").
			WithRemedy("list the tools of %s and name one", args.Server)
	}
	arguments := args.Arguments
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	if err := b.admit(ctx, c, args.Server, args.Tool, arguments); err != nil {
		return op.Result{}, err
	}
	answer, err := b.servers.Call(ctx, c, args.Server, args.Tool, arguments)
	if err != nil {
		return op.Result{}, err
	}
	result, err := op.Passed(answer)
	if err != nil {
		return op.Result{}, err
	}
	result.Retrieved = retrieved(server.Serves)
	return result, nil
}

// request passes on what is no call of a tool. The answer is of another form than the result of a tool, so a model gets it
// as text.
func (b *broker) request(ctx context.Context, c op.Call, args brokerCall) (op.Result, error) {
	server, err := admitted(c.Bound, args.Server)
	if err != nil {
		return op.Result{}, err
	}
	answer, err := b.servers.Request(ctx, c, args.Server, args.Tool, args.Arguments)
	if err != nil {
		return op.Result{}, err
	}
	if _, err := op.Passed(answer); err != nil {
		return op.Result{}, err // it is no object
	}
	result := op.Text(string(answer))
	if c.Raw {
		result = op.Result{Content: answer}
	}
	result.Retrieved = retrieved(server.Serves)
	return result, nil
}

// retrieved classifies a call as retrieval from outside by what the server declares, or else by what the broker serves.
// Listing is none, and neither is a call of a server that says it serves something else.
func retrieved(serves capability.Domains) capability.Domains {
	if len(serves) == 0 {
		serves = brokerServes
	}
	if !serves.Intersects(retrieving) {
		return nil
	}
	return serves
}

// admit finds a tool in the catalog that the turn is bound to, or else in the server's own: a server that was never asked
// has no catalog yet, and one that has grown knows more than was observed. What the turn knows, its schema included, was
// judged before the call came here; what is only known now is judged now.
func (b *broker) admit(ctx context.Context, c op.Call, server, name string, arguments json.RawMessage) error {
	named := func(t *capability.ObservedTool) bool { return t.Name == name }
	if slices.ContainsFunc(c.Bound.ServerTools(server), named) {
		return nil
	}
	catalog, err := b.catalog(ctx, c, server)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(catalog, named); i >= 0 {
		if held := catalog[i].Hold; held != nil {
			return vakerr.New(vakerr.CapabilityHeld, "%s/%s is held: %s", server, name, held.Reason).WithRemedy("%s", held.Remedy)
		}
		if err := c.Permit(server, catalog[i]); err != nil {
			return err
		}
		return b.schemas.Get(catalog[i].InputSchema).CheckArguments(server+"/"+name, arguments)
	}
	names := make([]string, len(catalog))
	for i, t := range catalog {
		names[i] = t.Name
	}
	return vakerr.New(vakerr.UnknownTool, "%s has no tool of that name for this turn", server).
		WithRemedy("call one of its tools: %s", phrase.List(names, maxListed))
}

// trim cuts a text to so many characters, the mark of the cut included, and puts it on one line.
func trim(text string, most int) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= most {
		return string(runes)
	}
	return strings.TrimRight(string(runes[:most-1]), " ") + "…"
}
