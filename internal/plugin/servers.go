package plugin

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/tailscale/hujson"
)

var registryName = regexp.MustCompile(`^[A-Za-z0-9.-]+/[A-Za-z0-9._-]+$`)

// registryFile is what of a server.json decides how a server is run.
type registryFile struct {
	Name        string
	Title       string
	Description string
	Version     string
	Packages    []registryPackage
	Remotes     []struct {
		Type    string
		URL     string
		Headers []registryInput
	}
}

type registryPackage struct {
	RegistryType         string
	Identifier           string
	Version              string
	RuntimeHint          string
	Transport            struct{ Type string }
	RuntimeArguments     []registryInput
	PackageArguments     []registryInput
	EnvironmentVariables []registryInput
}

type registryInput struct {
	Type        string
	Name        string
	Value       string
	Default     string
	Description string
	IsRequired  bool
	IsSecret    bool
}

// registry reads a server.json of the MCP registry: one server, as a package that a runner fetches when it is first
// started, or at an address.
func (r *reader) registry(m *Manifest, top []member) {
	m.Components = defaults(m.Format)
	var f registryFile
	if !r.decode(top, &f) {
		return
	}
	line := lineOf(top, "name")
	switch {
	case len(f.Name) < 3 || len(f.Name) > 200 || !registryName.MatchString(f.Name):
		r.refuse("plugin_schema", line, fmt.Sprintf("the name %s is not reverse.domain/name", quoted(f.Name)), "correct it")
		return
	case f.Description == "" || len([]rune(f.Description)) > 100:
		r.warn("plugin_schema", lineOf(top, "description"), "the description does not have 1 to 100 characters", "correct it; the registry refuses the file")
	}
	switch {
	case f.Version == "":
		r.refuse("plugin_schema", line, "the file names no version", `add "version"`)
		return
	case strings.ContainsAny(f.Version, "^~*<>=|") || strings.EqualFold(f.Version, "latest"):
		r.refuse("plugin_schema", lineOf(top, "version"), fmt.Sprintf("the version %s is a range", quoted(f.Version)), "name one version")
		return
	}
	m.Name = f.Name[strings.LastIndexByte(f.Name, '/')+1:]
	m.Title, m.Description, m.Version = f.Title, f.Description, f.Version
	for _, p := range f.Packages {
		if s, ok := r.run(m, p); ok {
			m.Servers = []Server{s}
			return
		}
	}
	for _, remote := range f.Remotes {
		if remote.Type != "streamable-http" {
			continue
		}
		s := Server{Name: m.Name, URL: remote.URL, Headers: map[string]string{}}
		for _, h := range remote.Headers {
			if v := r.value(m, h); v != "" {
				s.Headers[h.Name] = v
			}
		}
		m.Servers = []Server{s}
		return
	}
	r.component("plugin_server", 1, "the server has no package that can be run here and no address over Streamable HTTP", "run it by hand, and declare it in vak.toml")
}

// runners start a package of a registry; what follows the program stands before the package's name.
var runners = map[string][]string{
	"npm": {"npx", "-y"}, "pypi": {"uvx"}, "oci": {"docker", "run", "-i", "--rm"}, "nuget": {"dnx", "--yes"},
}

// run is the command line of a package; false when it is not run over stdio, or with a runner that is not known.
func (r *reader) run(m *Manifest, p registryPackage) (Server, bool) {
	runner, known := runners[p.RegistryType]
	if !known || p.Transport.Type != "stdio" && p.Transport.Type != "" || p.Identifier == "" || strings.HasPrefix(p.Identifier, "-") {
		return Server{}, false
	}
	s := Server{Name: m.Name, Command: runner[0], Args: append([]string(nil), runner[1:]...), Env: map[string]string{}}
	if p.RuntimeHint != "" && !strings.ContainsAny(p.RuntimeHint, " /\\") {
		s.Command = p.RuntimeHint
	}
	s.Args = append(s.Args, r.arguments(m, p.RuntimeArguments)...)
	for _, v := range p.EnvironmentVariables {
		if p.RegistryType == "oci" {
			s.Args = append(s.Args, "-e", v.Name)
		}
		if value := r.value(m, v); value != "" {
			s.Env[v.Name] = value
		}
	}
	identifier := p.Identifier
	switch {
	case p.Version == "":
	case p.RegistryType == "pypi":
		identifier += "==" + p.Version
	case p.RegistryType == "oci":
		if !strings.ContainsAny(identifier[strings.LastIndexByte(identifier, '/')+1:], ":@") {
			identifier += ":" + p.Version
		}
	default:
		identifier += "@" + p.Version
	}
	s.Args = append(append(s.Args, identifier), r.arguments(m, p.PackageArguments)...)
	return s, true
}

func (r *reader) arguments(m *Manifest, all []registryInput) []string {
	var args []string
	for _, a := range all {
		value := r.value(m, a)
		switch {
		case a.Type == "named" && value == "" && !a.IsRequired:
		case a.Type == "named":
			args = append(args, a.Name)
			if value != "" {
				args = append(args, value)
			}
		case value != "":
			args = append(args, value)
		}
	}
	return args
}

// value is what is written, or the placeholder of an option that the operator fills.
func (r *reader) value(m *Manifest, in registryInput) string {
	if in.Value != "" {
		return in.Value
	}
	if in.Default != "" && !in.IsSecret {
		return in.Default
	}
	if (in.IsRequired || in.IsSecret) && optionKey.MatchString(in.Name) {
		m.Options = append(m.Options, Option{Key: in.Name, Type: "string", Description: in.Description, Sensitive: in.IsSecret, Required: in.IsRequired})
		return "${user_config." + in.Name + "}"
	}
	return ""
}

// bundleFile is what of the manifest.json of an MCP bundle decides how its server is run.
type bundleFile struct {
	Name        string
	DisplayName string `json:"display_name"`
	Version     string
	Description string
	Author      struct{ Name string }
	License     string
	Server      struct {
		Type       string
		EntryPoint string `json:"entry_point"`
		MCPConfig  struct {
			Command string
			Args    []string
			Env     map[string]string
		} `json:"mcp_config"`
	}
}

// mcpb reads the manifest.json of an MCP bundle: one server whose files are in the bundle.
func (r *reader) mcpb(m *Manifest, top []member) {
	m.Components = defaults(m.Format)
	var f bundleFile
	if !r.decode(top, &f) {
		return
	}
	m.Name, m.Title, m.Version, m.Description, m.Author, m.License = f.Name, f.DisplayName, f.Version, f.Description, f.Author.Name, f.License
	if k, found := find(top, "user_config"); found {
		m.Options = r.options(k)
	}
	if f.Server.EntryPoint != "" {
		r.cleanPath("entry_point", lineOf(top, "server"), "./"+strings.TrimPrefix(f.Server.EntryPoint, "./"))
	}
	s := Server{Name: m.Name, Command: f.Server.MCPConfig.Command, Args: f.Server.MCPConfig.Args, Env: f.Server.MCPConfig.Env}
	if s.Command == "" {
		switch f.Server.Type {
		case "node":
			s.Command, s.Args = "node", []string{"${__dirname}/" + f.Server.EntryPoint}
		case "python":
			s.Command, s.Args = "python3", []string{"${__dirname}/" + f.Server.EntryPoint}
		case "binary":
			s.Command = "${__dirname}/" + f.Server.EntryPoint
		default:
			r.incompatible(m, lineOf(top, "server"), fmt.Sprintf("the server has the type %s and no command", quoted(f.Server.Type)), "get a bundle with mcp_config")
			return
		}
	}
	m.Servers = []Server{s}
	for _, k := range top {
		switch k.name {
		case "prompts":
			m.Unsupported = append(m.Unsupported, Unsupported{Kind: k.name})
		}
	}
}

// decode reads the members into a structure; a wrong type refuses the file.
func (r *reader) decode(top []member, into any) bool {
	o := &hujson.Object{}
	for _, k := range top {
		o.Members = append(o.Members, hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(k.name)}, Value: k.value})
	}
	if err := json.Unmarshal(raw(hujson.Value{Value: o}), into); err != nil {
		r.refuse("plugin_type", 1, "a field has the wrong type", "compare the file with its schema")
		return false
	}
	return true
}

func lineOf(top []member, key string) int {
	m, _ := find(top, key)
	return max(1, m.line)
}
