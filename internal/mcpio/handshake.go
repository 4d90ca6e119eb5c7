package mcpio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// The protocol versions of the two eras that we offer.
const (
	legacyVersion = "2025-11-25"
	modernVersion = "2026-07-28"
)

// legacyVersions are those we know, oldest first. They are all read alike.
var legacyVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", legacyVersion}

const maxInstructions = 64 << 10 // bytes

// hello is what a server said of itself.
type hello struct {
	era           Era
	protocol      string
	name, version string
	instructions  string
	capabilities  json.RawMessage
	logs          bool // it sends log messages
}

// greet agrees on an era with the server: legacy first, since a server that is asked for the other era first may start its
// backend, fall silent or exit.
func (c *Conn) greet(ctx context.Context) error {
	if c.spec.Era == EraModern {
		return c.greetModern(ctx)
	}
	err := c.greetLegacy(ctx)
	var refused *RPCError
	if c.spec.Era == EraLegacy || !errors.As(err, &refused) {
		return err
	}
	modernErr := c.greetModern(ctx)
	switch {
	case modernErr == nil:
		return nil
	case refused.Code == codeUnsupportedVersion, vakerr.CodeOf(modernErr) == vakerr.ServerProtocol:
		return modernErr // it is a modern server, of a version we do not speak
	}
	return err
}

func (c *Conn) greetLegacy(ctx context.Context) error {
	c.hello.era = EraLegacy
	params, err := json.Marshal(map[string]any{
		"protocolVersion": legacyVersion,
		"capabilities":    c.spec.declared(),
		"clientInfo":      c.clientInfo(),
	})
	if err != nil {
		return err
	}
	raw, err := c.roundTrip(ctx, c.nextID.Add(1), "initialize", params, nil)
	if err != nil {
		return err
	}
	var r struct {
		ProtocolVersion any             `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ServerInfo      json.RawMessage `json:"serverInfo"`
		Instructions    any             `json:"instructions"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return c.badGreeting(err)
	}
	version, _ := r.ProtocolVersion.(string)
	c.learn(version, r.Capabilities, r.ServerInfo, r.Instructions)
	c.link.adopt(nearestLegacy(version))
	c.link.initialized(ctx)
	c.link.listen(EraLegacy)
	return nil
}

// nearestLegacy is the newest version we know that is not newer than the answered one. Versions of no known form count as
// the oldest; refusing them would lose servers that work.
func nearestLegacy(answered string) string {
	for _, known := range slices.Backward(legacyVersions) {
		if known <= answered {
			return known
		}
	}
	return legacyVersions[0]
}

func (c *Conn) greetModern(ctx context.Context) error {
	c.hello.era = EraModern
	c.link.adopt(modernVersion) // it must stand in the headers of the question already
	raw, err := c.roundTrip(ctx, c.nextID.Add(1), "server/discover", nil, nil)
	if refused := (*RPCError)(nil); errors.As(err, &refused) && refused.Code == codeUnsupportedVersion {
		if !slices.Contains(supported(refused.Data), modernVersion) {
			return c.unknownVersion(refused.Data)
		}
		raw, err = c.roundTrip(ctx, c.nextID.Add(1), "server/discover", nil, nil) // it says that it does speak it
	}
	if err != nil {
		return err
	}
	var r struct {
		SupportedVersions []string        `json:"supportedVersions"`
		Capabilities      json.RawMessage `json:"capabilities"`
		Instructions      any             `json:"instructions"`
		Meta              struct {
			ServerInfo json.RawMessage `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return c.badGreeting(err)
	}
	if len(r.SupportedVersions) > 0 && !slices.Contains(r.SupportedVersions, modernVersion) {
		return c.unknownVersion(raw)
	}
	c.learn(modernVersion, r.Capabilities, r.Meta.ServerInfo, r.Instructions)
	c.link.listen(EraModern)
	return nil
}

// learn keeps what the server said of itself, as far as it makes sense.
func (c *Conn) learn(version string, capabilities, info json.RawMessage, instructions any) {
	var who struct{ Name, Version string }
	_ = json.Unmarshal(info, &who) // a server without a decent name is served all the same
	text, _ := instructions.(string)
	c.hello.protocol = c.words(version)
	c.hello.name, c.hello.version = clip(c.words(who.Name), maxToolName), clip(c.words(who.Version), maxToolName)
	c.hello.instructions = clip(c.redact.String(text), maxInstructions)
	c.hello.capabilities = c.redact.JSON(capabilities)
	var can struct {
		Logging json.RawMessage `json:"logging"`
	}
	_ = json.Unmarshal(capabilities, &can) // one that says nothing can do nothing
	c.hello.logs = isObject(can.Logging)
}

func (c *Conn) badGreeting(cause error) error {
	return vakerr.New(vakerr.ServerProtocol, "server %q answered the greeting with a result of the wrong form", c.spec.Name).
		WithRemedy("check that the command or URL is that of an MCP server").WithCause(cause)
}

// supported are the versions that a server says it speaks, in an error or a result.
func supported(raw json.RawMessage) []string {
	var r struct {
		Supported         []string `json:"supported"`
		SupportedVersions []string `json:"supportedVersions"`
	}
	_ = json.Unmarshal(raw, &r) // one that says nothing speaks none we know
	return append(r.Supported, r.SupportedVersions...)
}

func (c *Conn) unknownVersion(raw json.RawMessage) error {
	offered := c.words(strings.Join(supported(raw), ", "))
	if offered == "" {
		offered = "others"
	}
	return vakerr.New(vakerr.ServerProtocol, "server %q speaks none of the protocol versions up to %s, but %s",
		c.spec.Name, modernVersion, offered).WithRemedy("use a version of the server, or of vak-actors, that fits the other")
}

func (c *Conn) clientInfo() map[string]string {
	return map[string]string{"name": c.spec.ClientName, "version": c.spec.ClientVersion}
}

// modernParams adds the metadata that every request of the modern era carries.
func (c *Conn) modernParams(params json.RawMessage, client Client) json.RawMessage {
	fields, meta := map[string]json.RawMessage{}, map[string]any{}
	if params != nil {
		_ = json.Unmarshal(params, &fields) // it was checked to be an object
		_ = json.Unmarshal(fields["_meta"], &meta)
	}
	if meta == nil {
		meta = map[string]any{}
	}
	meta[mcp.MetaKeyProtocolVersion] = modernVersion
	meta[mcp.MetaKeyClientCapabilities] = struct{}{}
	if client != nil {
		if declared := client.Capabilities(); len(declared) > 0 {
			meta[mcp.MetaKeyClientCapabilities] = declared
		}
		if level := client.LogLevel(); level != "" {
			meta[mcp.MetaKeyLogLevel] = level
		}
	}
	meta[mcp.MetaKeyClientInfo] = c.clientInfo()
	fields["_meta"], _ = json.Marshal(meta) // maps of strings and values that came out of JSON
	out, _ := json.Marshal(fields)
	return out
}

// modernHeader repeats what the body says, as the modern era wants over HTTP: the method, a name, and arguments that the
// schema of a tool names. Other transports ignore it.
func (c *Conn) modernHeader(method string, params json.RawMessage) http.Header {
	h := http.Header{}
	for name, value := range mcp.StandardHeaders(modernVersion, mcp.MCPMethod(method), params) {
		h.Set(name, value)
	}
	if tools := c.mirroring.Load(); tools != nil && method == string(mcp.MethodToolsCall) {
		name, _ := mcp.ExtractHeaderName(mcp.MethodToolsCall, params)
		if tool := (*tools)[name]; tool != nil {
			for name, value := range mcp.GenerateParamHeaders(tool, params) {
				h.Set(name, value)
			}
		}
	}
	return h
}

// startError is the error of a Dial or Connect that failed with err. It waits for nothing.
func (c *Conn) startError(err error) error {
	e := vakerr.From(err)
	switch e.Code {
	case vakerr.DeadlineExceeded:
		reason := fmt.Sprintf("server %q did not come up within %s", c.spec.Name, c.spec.StartTimeout)
		return vakerr.New(vakerr.ServerStartFailed, "%s", withLastWords(reason, lastWords(c.redactStderr(c.link.stderr())))).
			WithRemedy("raise start_timeout of the server if it is slow, or run its command by hand to see what it waits for").
			WithCause(err)
	case vakerr.ServerDied, vakerr.ServerRejected:
		return vakerr.New(vakerr.ServerStartFailed, "%s", e.Reason).WithRemedy("%s", c.startRemedy(e)).WithCause(err)
	default:
		return err
	}
}

func (c *Conn) startRemedy(e *vakerr.Error) string {
	if c.spec.Transport == Stdio {
		return "run its command by hand to see why; check its arguments and environment"
	}
	return e.Remedy
}
