package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/mcpio"
	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Connector makes connections from declarations.
type Connector struct {
	Workspace string // absolute
	GroupDir  string // where groups of child processes are recorded
	Version   string // of this program, told to servers
	// Secrets resolves the ${NAME} of env, headers, args and url. It may read files.
	Secrets func(name string) (string, bool)
	Clients *protocol.Clients
}

// connection is a live one.
type connection struct {
	*mcpio.Conn
	notes   []string
	secrets *mcpio.Redactor // what no result may show
	pid     int             // 0 over HTTP
	started time.Time
	wanted  *subscriptions // of the server, of whatever connection
}

var _ protocol.Connection = (*connection)(nil)

// Noted is a connection that has something to say about its catalog.
type Noted interface{ Notes() []string }

// Notes says which tools were left out or repaired, and why.
func (c *connection) Notes() []string { return c.notes }

// lastWords are the end of what the server wrote to stderr, and the last lines it wrote that were no frames.
func (c *connection) lastWords() (stderr string, junk []string) {
	now := c.Info()
	return now.StderrTail, now.Junk.Last
}

// Send implements protocol.Connection. A secret that the server was given is taken out of its result: a model would
// repeat it, and a ledger keeps it.
func (c *connection) Send(ctx context.Context, r protocol.ServerRequest) (json.RawMessage, error) {
	options := mcpio.CallOptions{Owner: r.Session, Extra: r.Extra}
	if r.Client != nil {
		options.Client = asked{r.Client}
		if r.Client.TakesQuestions() { // of the era without sessions, where many clients share one session of the runtime
			options.Owner += "\x00" + r.ClientName
		}
	}
	var result json.RawMessage
	var err error
	switch r.Method {
	case toolsCall:
		result, err = c.CallTool(ctx, r.Tool, r.Params, options)
	case subscribeMethod, unsubscribeMethod:
		result, err = c.subscription(ctx, r)
	default:
		result, err = c.Request(ctx, r.Method, r.Params, options)
	}
	if err != nil {
		return nil, asAnswered(err)
	}
	clean := json.RawMessage(c.secrets.String(string(result)))
	if string(clean) != string(result) && !json.Valid(clean) {
		return nil, vakerr.New(vakerr.OutputInvalid, "the result shows a secret of its server in a place where it cannot be taken out").
			WithRemedy("report it to the author of the server")
	}
	return clean, nil
}

// subscription has a client hear of a resource, or not any more.
func (c *connection) subscription(ctx context.Context, r protocol.ServerRequest) (json.RawMessage, error) {
	send, err := c.wanted.admit(r)
	if err != nil {
		return nil, err
	}
	result := json.RawMessage(`{}`)
	if send {
		if result, err = c.Request(ctx, r.Method, r.Params, mcpio.CallOptions{}); err != nil {
			return nil, err
		}
	}
	c.wanted.note(r)
	return result, nil
}

const toolsCall = "tools/call"

// asked is the client of a call as mcpio knows it.
type asked struct{ protocol.Client }

// Ask implements mcpio.Client.
func (a asked) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	result, err := a.Client.Ask(ctx, method, params)
	if refused := (*protocol.RPCError)(nil); errors.As(err, &refused) {
		return nil, &mcpio.RPCError{Code: refused.Code, Message: refused.Message, Data: refused.Data}
	}
	return result, err
}

// asAnswered keeps the error that a server answered with in the chain, as whoever is not in this package knows it.
func asAnswered(err error) error {
	if e := (*mcpio.RPCError)(nil); errors.As(err, &e) {
		return vakerr.From(err).WithCause(&protocol.RPCError{Code: e.Code, Message: e.Message, Data: e.Data})
	}
	return err
}

// connect starts or reaches a server and lists its tools. It blocks, at most for the server's start timeout.
func (k Connector) connect(ctx context.Context, name string, s *capability.Server, wanted *subscriptions, h mcpio.Handlers) (*connection, seen, error) {
	x := &expander{lookup: k.Secrets}
	spec, err := k.spec(name, s, x)
	if err != nil {
		return nil, seen{}, x.hide(err)
	}
	conn, catalog, features, err := mcpio.Connect(ctx, spec, h)
	if err != nil {
		return nil, seen{}, x.hide(err)
	}
	renewing, cancel := context.WithTimeout(ctx, renewTime)
	wanted.renew(renewing, conn)
	cancel()
	info := conn.Info()
	return &connection{conn, notes(catalog), mcpio.NewRedactor(x.secrets...), info.PID, info.Started, wanted}, observed(catalog, features), nil
}

// notes is what an operator who probes the server is told of its catalog.
func notes(c mcpio.Catalog) []string {
	all := lacks(c, len(c.Quarantined))
	for _, r := range c.Repaired {
		all = append(all, fmt.Sprintf("%s: repaired: %s", r.Name, r.What))
	}
	return all
}

// lacks says what was left out of a catalog, of at most so many tools.
func lacks(c mcpio.Catalog, most int) []string {
	var all []string
	if c.Truncated {
		all = append(all, "the list is not complete: "+c.Note)
	}
	for _, q := range c.Quarantined[:min(len(c.Quarantined), most)] {
		all = append(all, fmt.Sprintf("%s: left out: %s", phrase.Cut(q.Name, maxNoteName), q.Reason))
	}
	return all
}

const (
	maxLacks    = 50 // tools that an observation says are left out
	maxNoteName = 80 // bytes of a tool's name
)

// seen is a catalog as it becomes an observation.
type seen struct {
	tools    []capability.ObservedTool
	features capability.Features
	lacks    []string
}

func observed(c mcpio.Catalog, f mcpio.Features) seen {
	tools := make([]capability.ObservedTool, len(c.Tools))
	for i, t := range c.Tools {
		tools[i] = capability.ObservedTool{
			Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, Definition: t.Raw,
			ReadOnly: t.ReadOnly, Destructive: t.Destructive, Idempotent: t.Idempotent,
		}
	}
	return seen{tools, capability.Features{
		Prompts: features(f.Prompts), Resources: features(f.Resources), Templates: features(f.Templates),
	}, slices.Concat(lacks(c, maxLacks), f.Notes)}
}

func features(list []mcpio.Feature) []capability.ObservedFeature {
	var all []capability.ObservedFeature
	for _, f := range list {
		all = append(all, capability.ObservedFeature{Key: f.Key, Definition: f.Raw})
	}
	return all
}

// clientFeatures are what a server is told that clients may be able to do. What it then asks goes to the client of the call
// in flight. Roots are those of one client, so they are declared only where a connection belongs to one session: a server
// that heard of them in between would take them for everybody's.
func clientFeatures(s *capability.Server) json.RawMessage {
	if s.Isolation == capability.IsolationSession {
		return json.RawMessage(`{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`)
	}
	return json.RawMessage(`{"elicitation":{"form":{},"url":{}},"sampling":{}}`)
}

// spec says how a server is reached.
func (k Connector) spec(name string, s *capability.Server, x *expander) (spec mcpio.Spec, err error) {
	spec = mcpio.Spec{
		Name: name, ClientName: "vak-actors", ClientVersion: k.Version, GroupDir: k.GroupDir,
		StartTimeout: s.StartTimeout, CallTimeout: s.CallTimeout, Capabilities: clientFeatures(s),
		Era: map[capability.Era]mcpio.Era{capability.EraLegacy: mcpio.EraLegacy, capability.EraModern: mcpio.EraModern}[s.Era],
	}
	switch s.Transport {
	case capability.TransportHTTP, capability.TransportSSE:
		spec.Transport, spec.URL, spec.Headers = mcpio.HTTP, x.expand(s.URL), x.all(s.Headers)
		if s.Transport == capability.TransportSSE {
			spec.Transport = mcpio.SSE
		}
	case capability.TransportStdio:
		spec.Command = childproc.ResolveCommand(k.Workspace, x.expand(s.Command))
		for _, a := range s.Args {
			spec.Args = append(spec.Args, x.expand(a))
		}
		env := x.all(s.Env)
		declared := make([]string, 0, len(env))
		for _, name := range slices.Sorted(maps.Keys(env)) {
			declared = append(declared, name+"="+env[name])
		}
		spec.Env = childproc.Environment(declared)
		if spec.Dir, err = k.dir(x.expand(s.Cwd)); err != nil {
			return mcpio.Spec{}, err
		}
	case capability.TransportWebSocket: // is refused before: see Server.Unready
	}
	if len(x.missing) > 0 {
		return mcpio.Spec{}, vakerr.New(vakerr.SecretUnresolved, "server %q needs %s, which is set nowhere", name, strings.Join(x.missing, ", ")).
			WithRemedy("set it in the daemon's environment or its secrets file; it is picked up on the next attempt")
	}
	return spec, nil
}

// dir is the working folder of a child; it lies in the workspace unless it was given as an absolute path.
func (k Connector) dir(cwd string) (string, error) {
	if cwd == "" {
		return k.Workspace, nil
	}
	if filepath.IsAbs(cwd) {
		return cwd, nil
	}
	if !filepath.IsLocal(cwd) {
		return "", vakerr.New(vakerr.PathEscapes, "cwd %q leads out of the workspace", cwd).
			WithRemedy("give a folder of the workspace, or an absolute path")
	}
	return filepath.Join(k.Workspace, cwd), nil
}

// expander resolves placeholders and remembers which it could not, and what it was given under the name of a secret.
type expander struct {
	lookup  func(string) (string, bool)
	missing []string
	values  []string // all that was put in
	secrets []string
}

// hide takes what was put into a definition out of an error: a command, a folder or an address may hold a secret.
func (x *expander) hide(err error) error {
	var e *vakerr.Error
	if !errors.As(err, &e) {
		return err
	}
	redact := mcpio.NewRedactor(x.values...)
	clean := *e
	clean.Reason, clean.Remedy = redact.String(e.Reason), redact.String(e.Remedy)
	return &clean
}

// minSecret is the length in bytes from which a value is taken out of results. Shorter ones are words too often, and a
// result is data that somebody works with.
const minSecret = 8

func (x *expander) note(name, value string) {
	if !config.SecretName(name) {
		return
	}
	_, credential, _ := strings.Cut(value, " ") // "Bearer xyz"
	for _, secret := range []string{value, credential} {
		if len(secret) >= minSecret {
			x.secrets = append(x.secrets, secret)
		}
	}
}

func (x *expander) expand(text string) string {
	out, missing := config.Expand(text, func(name string) (string, bool) {
		if x.lookup == nil {
			return "", false
		}
		value, found := x.lookup(name)
		x.values = append(x.values, value)
		x.note(name, value)
		return value, found
	})
	for _, name := range missing {
		if !slices.Contains(x.missing, name) {
			x.missing = append(x.missing, name)
		}
	}
	return out
}

func (x *expander) all(values map[string]string) map[string]string {
	out := make(map[string]string, len(values))
	for k, v := range values {
		out[k] = x.expand(v)
		x.note(k, out[k])
	}
	return out
}

// target is a server's command line or address, fit to be shown.
func target(s *capability.Server) string {
	if s.Transport != capability.TransportStdio {
		return config.MaskURL(s.URL)
	}
	return strings.Join(append([]string{s.Command}, config.MaskArgs(s.Args)...), " ")
}
