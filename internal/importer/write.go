package importer

import (
	"fmt"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
)

// write renders an entry as TOML, with a blank line before it.
func write(name string, s config.Server) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s\n", header(name))
	text := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&out, "%s = %s\n", key, quote(value))
		}
	}
	list := func(key string, values []string) {
		if len(values) > 0 {
			quoted := make([]string, len(values))
			for i, v := range values {
				quoted[i] = quote(v)
			}
			fmt.Fprintf(&out, "%s = [%s]\n", key, strings.Join(quoted, ", "))
		}
	}
	duration := func(key string, d, def time.Duration) {
		if d != def {
			text(key, d.String())
		}
	}
	table := func(key string, values map[string]string) {
		pairs := make([]string, 0, len(values))
		for _, name := range sorted(values) {
			pairs = append(pairs, quote(name)+" = "+quote(values[name]))
		}
		if len(pairs) > 0 {
			fmt.Fprintf(&out, "%s = { %s }\n", key, strings.Join(pairs, ", "))
		}
	}
	def := config.DefaultServer()
	text("command", s.Command)
	list("args", s.Args)
	table("env", s.Env)
	text("cwd", s.Cwd)
	text("url", s.URL)
	if s.Transport == capability.TransportSSE {
		text("transport", string(s.Transport))
	}
	table("headers", s.Headers)
	duration("start_timeout", s.StartTimeout, def.StartTimeout)
	duration("call_timeout", s.CallTimeout, def.CallTimeout)
	list("enabled_tools", s.EnabledTools)
	list("disabled_tools", s.DisabledTools)
	var serves []string
	for _, d := range s.Serves {
		serves = append(serves, string(d))
	}
	list("serves", serves)
	return out.String()
}

// header is the line that begins an entry. A name may hold dots, so it is quoted where it does.
func header(name string) string {
	if strings.Contains(name, ".") {
		name = quote(name)
	}
	return "[mcp.servers." + name + "]"
}

// quote writes a basic string of TOML.
func quote(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&out, `\u%04X`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}
