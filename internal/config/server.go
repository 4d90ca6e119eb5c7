package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/vak-actors/vak-actors/capability"
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// CheckName says what is wrong with the name of a server or tenant: it becomes part of ids, addresses and paths.
func CheckName(name string) error {
	switch {
	case strings.Contains(name, ".."), strings.Contains(name, "/"), strings.Contains(name, `\`):
		return errors.New("a name must not hold .. or a slash")
	case !namePattern.MatchString(name):
		return errors.New("a name has 1 to 64 of the characters A-Z a-z 0-9 _ . -")
	}
	return nil
}

const serverConsequence = "the server is left out until this is repaired"

func readServers(top *section) map[string]Server {
	mcp := top.always("mcp")
	defer func() { top.bad = top.bad || mcp.bad }()
	table := mcp.table("servers", "")
	mcp.close()
	if table == nil {
		return nil
	}
	servers := map[string]Server{}
	for _, s := range table.entries(maxServers, serverConsequence) {
		if err := CheckName(s.name()); err != nil {
			s.fail("server_name", "", fmt.Sprintf("server %s: %v", keyText(s.name()), err), "give it another name")
		}
		server := s.server()
		for _, f := range server.Findings(s.name()) {
			if !server.Enabled {
				break // a name alone may switch off what another file declares
			}
			if f.Severity == capability.SeverityError {
				s.fail(f.Code, f.Key, f.Message, f.Hint)
			} else {
				s.warn(f.Code, f.Key, f.Message, f.Hint)
			}
		}
		if !s.bad {
			servers[s.name()] = server
		}
	}
	return servers
}

// eraAuto is the era of a server that does not say: legacy is tried first.
const eraAuto = "auto"

// server reads every key of an entry and closes it.
func (s *section) server() Server {
	server := DefaultServer()
	server.Line = s.line()
	server.Enabled = s.flag("enabled", server.Enabled)
	server.Command = s.text("command", "")
	server.Args = s.words("args")
	server.Env = s.pairs("env")
	server.Cwd = s.text("cwd", "")
	server.URL = s.url("url")
	server.Headers = s.pairs("headers")
	server.Serves = s.domains("serves")
	server.Isolation = capability.Isolation(s.oneOf("isolation", string(server.Isolation),
		string(capability.IsolationShared), string(capability.IsolationSession)))
	if era := s.oneOf("era", eraAuto, eraAuto, string(capability.EraLegacy), string(capability.EraModern)); era != eraAuto {
		server.Era = capability.Era(era)
	}
	server.IdleTTL = s.duration("idle_ttl", server.IdleTTL)
	_, written := s.values["start_timeout"]
	if most := s.duration("start_timeout", server.StartTime()); written {
		server.StartTimeout = most
	}
	server.CallTimeout = s.duration("call_timeout", server.CallTimeout)
	server.MaxInFlight = s.number("max_in_flight", server.MaxInFlight, 1024)
	server.EnabledTools = s.words("enabled_tools")
	server.DisabledTools = s.words("disabled_tools")
	server.Network = s.flag("network", server.Network)
	server.Transport = server.inferTransport()
	server.Transport = capability.Transport(s.oneOf("transport", string(server.Transport),
		string(capability.TransportStdio), string(capability.TransportHTTP), string(capability.TransportSSE)))
	s.close()
	if _, written := s.values["network"]; written && !server.Network && !s.bad {
		s.warn("config_unsupported", "network", "network = false "+s.label()+" has no effect yet: a server reaches whatever this machine reaches",
			"remove the key, or run the server in a sandbox of your own")
	}
	return server
}

func (s Server) inferTransport() capability.Transport {
	if s.Command == "" && s.URL != "" {
		return capability.TransportHTTP
	}
	return capability.TransportStdio
}

// url reads an address, which is shown without its secrets.
func (s *section) url(key string) string {
	shown := len(s.doc.settings)
	got := s.text(key, "")
	s.doc.settings[shown].Value = fmt.Sprintf("%q", MaskURL(got))
	return got
}

// domains reads a text of words or a list of them.
func (s *section) domains(key string) capability.Domains {
	v, ok := s.take(key)
	if !ok {
		return nil
	}
	var words []string
	switch t := v.(type) {
	case string:
		words = strings.FieldsFunc(t, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	case []any:
		for _, item := range t {
			if text, isText := item.(string); isText {
				words = append(words, text)
			} else {
				s.wrongType(key, item, "a list of strings, and each entry a string")
				return nil
			}
		}
	default:
		s.wrongType(key, v, "a list of domains")
		return nil
	}
	domains := capability.ParseDomains(words...)
	s.record(key, listText(words))
	return domains
}

// Finding is one thing to say of a server entry, whatever dialect it was written in.
type Finding struct {
	Severity capability.Severity
	Code     string
	Key      string // the key of vak.toml it is about; empty: the entry
	Message  string
	Hint     string
}

// Findings checks what the dialects share: exactly one of command and url, an address that can be dialled, nothing that
// no process can be given, and secrets that stand in the open. An entry with an error must not be declared.
func (s Server) Findings(name string) []Finding {
	f := findings{name: keyText(name)}
	switch {
	case s.Command == "" && s.URL == "":
		f.error("server_transport", "", "has neither a command nor a url", "add one of them")
	case s.Command != "" && s.URL != "":
		f.error("server_transport", "url", "has both a command and a url", "remove one of them")
	case s.Transport != capability.TransportStdio && s.URL == "":
		f.error("server_transport", "transport", fmt.Sprintf("has the transport %s but no url", s.Transport), "add the url")
	case s.Transport == capability.TransportStdio && s.Command == "":
		f.error("server_transport", "transport", "has the transport stdio but no command", "add the command")
	}
	f.checkURL(s)
	if s.Transport == capability.TransportStdio && len(s.Headers) > 0 {
		f.error("server_transport", "headers", "has headers, which a command has no use for", "remove them, or write a url")
	}
	if s.Transport != capability.TransportStdio && (len(s.Args) > 0 || len(s.Env) > 0) {
		f.error("server_transport", "", "has args or env, which a url has no use for", "remove them, or write a command")
	}
	if strings.ContainsRune(s.Command, ' ') && len(s.Args) == 0 {
		f.warn("server_command", "command", "has a command that holds blanks and no args: it is taken as the name of one program",
			`write command = "program" and args = ["first", "second"]`)
	}
	f.checkWords(s)
	f.checkSecrets(s)
	if reason, remedy := s.Unready(); reason != "" {
		f.warn("server_unready", "", "is declared and cannot be started: "+reason, remedy)
	}
	return f.all
}

type findings struct {
	name string
	all  []Finding
}

func (f *findings) error(code, key, message, hint string) {
	f.all = append(f.all, Finding{capability.SeverityError, code, key, "server " + f.name + " " + message, hint})
}

func (f *findings) warn(code, key, message, hint string) {
	f.all = append(f.all, Finding{capability.SeverityWarning, code, key, "server " + f.name + " " + message, hint})
}

func (f *findings) checkURL(s Server) {
	if s.undialable() {
		f.error("server_url", "url", "has a url that is no http:// or https:// address", `write it as url = "https://host/path"`)
	}
}

// undialable reports whether a url is no address of a server, whatever its placeholders stand for.
func (s Server) undialable() bool {
	text := s.URL
	if text == "" || strings.HasPrefix(text, "${") || s.Transport == capability.TransportWebSocket || s.blankAt() == "url" {
		return false
	}
	// A placeholder may stand for any part; letters keep the rest of the address readable for the check.
	u, err := url.Parse(withoutPlaceholders(text))
	return err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == ""
}

// checkWords finds what cannot be handed to a process or put into a header.
func (f *findings) checkWords(s Server) {
	const hint = "remove the character"
	for i, arg := range s.Args {
		if strings.ContainsRune(arg, 0) {
			f.error("server_value", "args", fmt.Sprintf("holds a NUL byte in args, entry %d", i+1), hint)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.ContainsRune(s.Env[key], 0) {
			f.error("server_value", "env", fmt.Sprintf("has an env entry %s that no process can be given", keyText(key)), hint)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Headers)) {
		if !headerName.MatchString(key) || strings.ContainsAny(s.Headers[key], "\r\n\x00") {
			f.error("server_value", "headers", fmt.Sprintf("has a header %s that cannot be sent", keyText(key)), hint)
		}
	}
	for _, name := range s.malformed() {
		f.warn("server_placeholder", "", fmt.Sprintf("holds %s, which is no placeholder of this program", name),
			"write ${NAME} or ${NAME:-default}; a server with an unresolved placeholder is not started")
	}
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// Texts yields every text of the entry that may hold placeholders, in a fixed order.
func (s Server) Texts(yield func(string) bool) {
	texts := append([]string{s.Command, s.URL, s.Cwd}, s.Args...)
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			texts = append(texts, m[key])
		}
	}
	for _, t := range texts {
		if !yield(t) {
			return
		}
	}
}

func (s Server) malformed() []string {
	var all []string
	for text := range s.Texts {
		for _, p := range Placeholders(text) {
			switch {
			case p.Open:
				all = append(all, "a ${ that is never closed") // what follows may be anything, a secret too
			case p.Malformed:
				all = append(all, keyText("${"+p.Name+"}"))
			}
		}
	}
	return all
}
