package declare

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// workspace is the origin of everything this package declares.
var workspace = capability.Origin{Kind: capability.OriginWorkspace}

// serverDeclaration turns an entry into a declaration. Values stay as written.
func serverDeclaration(name string, s config.Server, source string) capability.Declaration {
	server := &capability.Server{
		Transport: s.Transport, Command: s.Command, Args: s.Args, Env: s.Env, Cwd: s.Cwd, URL: s.URL, Headers: s.Headers,
		Era: s.Era, Isolation: s.Isolation, IdleTTL: s.IdleTTL, StartTimeout: s.StartTime(), CallTimeout: s.CallTimeout,
		MaxInFlight: s.MaxInFlight, EnabledTools: s.EnabledTools, DisabledTools: s.DisabledTools, Network: s.Network, Title: s.Title,
	}
	server.Unready, server.Remedy = s.Unready()
	return capability.Declaration{
		ID: capability.ID{Kind: capability.KindMCP, Name: name}, Origin: workspace, Summary: serverSummary(s),
		Serves: s.Serves, Source: source, Config: server,
	}
}

// serverSummary says how a server is reached, without arguments, paths or queries: they may hold secrets.
func serverSummary(s config.Server) string {
	if s.Transport != capability.TransportStdio {
		if u, err := url.Parse(s.URL); err == nil && u.Host != "" {
			return "MCP server at " + u.Host
		}
		return "MCP server over HTTP"
	}
	return fmt.Sprintf("MCP server, started as %s", path.Base(s.Command))
}

// hookDeclaration turns an entry of [[hooks]] into a declaration.
func hookDeclaration(h config.Hook, source string) capability.Declaration {
	text := "runs at " + h.Event
	if h.Match != "" {
		text += " for " + h.Match
	}
	if h.Refusal != "" {
		text = "refuses every tool call: " + h.Refusal
	}
	return capability.Declaration{
		ID: capability.ID{Kind: capability.KindHook, Name: h.Name}, Origin: workspace, Summary: summary(text), Source: source,
		Config: &capability.Hook{
			Event: h.Event, Match: h.Match, Command: h.Command, Timeout: h.Timeout, FailureMode: h.FailureMode, Refusal: h.Refusal,
		},
	}
}

// readConfig reads vak.toml.
func readConfig(file string, text []byte) *product {
	c, problems := config.Parse(file, text)
	p := &product{problems: problems, config: &c, broken: c.Unreadable}
	p.declare(file, c)
	return p
}

// readLayer reads a file of the form of vak.toml that lies below it.
func readLayer(file string, text []byte) *product {
	c, problems := config.ParseLayer(file, text)
	p := &product{problems: problems, layer: &c, permissions: []policy.PermissionRules{c.Permissions}, broken: c.Unreadable}
	p.declare(file, c)
	return p
}

// declare takes the servers and hooks of a configuration.
func (p *product) declare(file string, c config.Config) {
	for _, name := range slices.Sorted(maps.Keys(c.MCP)) {
		p.server(name, c.MCP[name], file)
	}
	for i, h := range c.EnabledHooks() {
		d := hookDeclaration(h, file)
		d.Config.(*capability.Hook).Position = i
		p.declarations = append(p.declarations, d)
	}
}

// server takes one server, or its name where it is switched off.
func (p *product) server(name string, s config.Server, file string) {
	if !s.Enabled {
		p.off = append(p.off, capability.Shadow{ID: capability.ID{Kind: capability.KindMCP, Name: name}, By: file})
		return
	}
	p.declarations = append(p.declarations, serverDeclaration(name, s, file))
}

// secretDigest tells by one word whether the values behind a server's placeholders are what they were. It is keyed, so
// that a weak secret cannot be guessed from it, and empty when the server has none or nobody can resolve them.
func (o *Options) secretDigest(s *capability.Server) string {
	if o.LookupSecret == nil {
		return ""
	}
	mac := hmac.New(sha256.New, o.SecretKey)
	used := false
	for text := range serverTexts(s) {
		for _, p := range config.Placeholders(text) {
			used = true
			value, found := o.LookupSecret(p.Name)
			fmt.Fprintf(mac, "%q %t %s\x00", p.Name, found, value)
		}
	}
	if !used {
		return ""
	}
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func serverTexts(s *capability.Server) func(yield func(string) bool) {
	return config.Server{Command: s.Command, URL: s.URL, Cwd: s.Cwd, Args: s.Args, Env: s.Env, Headers: s.Headers}.Texts
}
