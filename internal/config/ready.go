package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

var (
	// blank matches what documentation writes where a value belongs: <your-key>, YOUR_API_KEY, your-api-key as a whole
	// value, /path/to/, and the words that say so.
	blank = regexp.MustCompile(`<[A-Za-z][^<>\s]*( [^<>\s]+)*>|(^|[^A-Za-z0-9])YOUR[_-][A-Z0-9]|` +
		`(^|=|Bearer )(?i:your[_ -][a-z0-9_ -]+|your[A-Z][A-Za-z0-9]+|x{4,}|change[_-]?me|replace[_-]?me|replace[_-]with[_-].*|insert[_-].*|\.\.\.)$|(?i:x{8,})|` +
		`(?i:(^|[^a-z0-9])path/to/)`)
	// blankPart matches, besides, what stands for a part of an address or a header: {minimal | mcp}, your-domain.com.
	blankPart = regexp.MustCompile(`(^|[^$\{])\{[A-Za-z_][A-Za-z0-9_ |-]*\}|//your[_-][a-z0-9-]+[./:]`)
)

// Unready says why an entry can never start as it is written, and what to do about it; empty for one that can. Such an
// entry is declared, so that nobody misses it, and every demand is answered with the reason.
func (s Server) Unready() (reason, remedy string) {
	switch s.Transport {
	case capability.TransportWebSocket:
		return "it speaks over a WebSocket, which this program does not", "give the server's Streamable HTTP address, with type http"
	case capability.TransportStdio, capability.TransportHTTP, capability.TransportSSE:
	}
	if s.Closed != "" {
		return s.Closed, "change that setting, or declare the server in vak.toml"
	}
	if where := s.blankAt(); where != "" {
		return fmt.Sprintf("it is not configured: %s still holds a placeholder of its documentation", where),
			"write the value there, or ${NAME} and keep the value in the environment or the secrets file"
	}
	if s.undialable() {
		return "its url is no http:// or https:// address", "correct the url"
	}
	return "", ""
}

// blankAt names the first place where a value was never filled in.
func (s Server) blankAt() string {
	if blank.MatchString(s.Command) {
		return "command"
	}
	for i, arg := range s.Args {
		if blank.MatchString(arg) {
			return fmt.Sprintf("args, entry %d,", i+1)
		}
	}
	if text := withoutPlaceholders(s.URL); blank.MatchString(text) || blankPart.MatchString(text) {
		return "url"
	}
	if blank.MatchString(s.Cwd) {
		return "cwd"
	}
	for _, m := range []struct {
		key    string
		values map[string]string
	}{{"env", s.Env}, {"headers", s.Headers}} {
		for _, name := range slices.Sorted(maps.Keys(m.values)) {
			if v := m.values[name]; blank.MatchString(v) || blankPart.MatchString(v) {
				return m.key + " " + keyText(name)
			}
		}
	}
	return ""
}

// ServerID is the name under which a server is addressed: its name where that can stand in an address, a path and an id,
// and otherwise what of it can.
func ServerID(name string) string {
	if len(name) <= maxServerID && !strings.Contains(name, "..") && !unaddressable.MatchString(name) && strings.TrimSpace(name) == name {
		return name
	}
	var words []string
	for _, w := range idWord.FindAllString(name, -1) {
		if w = strings.Trim(w, ".-"); w != "" {
			words = append(words, w)
		}
	}
	id := strings.ReplaceAll(strings.Join(words, "-"), "..", ".")
	return strings.Trim(id[:min(len(id), maxServerID)], ".-")
}

const maxServerID = 128 // bytes

var (
	unaddressable = regexp.MustCompile(`[/\\:"?#%\x00-\x1f\x7f]|[^\pL\pM\pN\pP\pS ]`)
	idWord        = regexp.MustCompile(`[A-Za-z0-9_.-]+`)
)
