package corpus

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/plugin"
)

// manifestDetail is what a row says of a manifest or marketplace.
type manifestDetail struct {
	Keys       []string        `json:"keys"`
	Version    *string         `json:"version"`
	N          int             `json:"n"`
	Skills     json.RawMessage `json:"skills"`
	Commands   json.RawMessage `json:"commands"`
	Agents     json.RawMessage `json:"agents"`
	MCPServers json.RawMessage `json:"mcpServers"`
	Hooks      json.RawMessage `json:"hooks"`
}

// V201: every manifest and marketplace of the corpus, each row exactly.
func TestManifests(t *testing.T) {
	dir := corpusDir(t)
	if dir == "" {
		return
	}
	seen := map[string]int{}
	for _, cells := range table(t, filepath.Join(dir, "expect.tsv")) {
		kind, name, _ := strings.Cut(cells[1], ":")
		if kind != "plugin" && kind != "marketplace" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(cells[0])))
		if err != nil {
			t.Fatal(err)
		}
		var want manifestDetail
		if cells[5] != "" {
			if err := json.Unmarshal([]byte(cells[5]), &want); err != nil {
				t.Fatal(err)
			}
		}
		seen[kind+" "+cells[2]]++
		check := manifest
		if kind == "marketplace" {
			check = marketplace
		}
		if err := check(cells[0], name, cells[2], cells[3], text, want); err != nil {
			t.Errorf("%s %s (%s, %s): %v", cells[0], cells[1], cells[2], cells[3], err)
		}
	}
	t.Log(seen)
}

// table reads a file of rows with tabs; the first is left out.
func table(t *testing.T, name string) [][]string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if i > 0 {
			all = append(all, append(strings.Split(line, "\t"), "", "", "", ""))
		}
	}
	return all
}

// candidate is the format that a file has by its path, as in the folder of its plugin.
func candidate(file string, text []byte) plugin.Candidate {
	for _, c := range plugin.Candidates() {
		if strings.HasSuffix(file, "/"+c.Path) && (path.Base(c.Path) != c.Path || c.Format != plugin.FormatAgentPlugins || strings.Contains(string(text), "agent-plugins.org")) {
			return plugin.Candidate{Path: c.Path, Format: c.Format}
		}
	}
	return plugin.Candidate{Path: path.Base(file), Format: plugin.FormatPlain}
}

func manifest(file, name, verdict, reason string, text []byte, want manifestDetail) error {
	m, problems, err := plugin.ReadManifest(candidate(file, text), text)
	if verdict == "error" {
		if err == nil || len(problems) == 0 {
			return fmt.Errorf("read as %+v", m)
		}
		return nil
	}
	version := ""
	if want.Version != nil {
		version = *want.Version
	}
	styled := slices.ContainsFunc(problems, func(p capability.Problem) bool { return p.Code == "plugin_path_style" })
	switch {
	case err != nil:
		return err
	case m.Name != name || m.Version != version:
		return fmt.Errorf("read %q of version %q", m.Name, m.Version)
	case !slices.Equal(m.Keys, want.Keys):
		return fmt.Errorf("keys %q", m.Keys)
	case strings.Contains(reason, "path without ./") != styled:
		return fmt.Errorf("a path without ./ is reported: %t", styled)
	case strings.Contains(reason, "kebab") && len(problems) == 0:
		return fmt.Errorf("the style of the name is not reported")
	}
	for _, part := range []struct {
		key     string
		written json.RawMessage
		read    []string
		inline  bool
	}{
		{"skills", want.Skills, m.Components.Skills, false},
		{"commands", want.Commands, m.Components.Commands, false},
		{"mcpServers", want.MCPServers, m.Components.Servers, m.Components.InlineServers},
		{"hooks", want.Hooks, m.Components.Hooks, m.Components.InlineHooks},
	} {
		if err := written(part.written, part.read, part.inline); err != nil {
			return fmt.Errorf("%s: %v", part.key, err)
		}
	}
	if len(want.Agents) > 0 && !slices.ContainsFunc(m.Unsupported, func(u plugin.Unsupported) bool { return u.Kind == "agents" }) {
		return fmt.Errorf("agents are not listed as unsupported")
	}
	return nil
}

// written compares the paths of a key with those that were read; a list that is none of paths names what is in place.
func written(raw json.RawMessage, read []string, inline bool) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var one string
	var all []string
	if json.Unmarshal(raw, &one) == nil {
		all = []string{one}
	} else if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	for _, p := range all {
		if !slices.Contains(read, path.Clean(p)) && !(inline && !strings.Contains(p, "/")) {
			return fmt.Errorf("%q is written, %q was read, in place %t", p, read, inline)
		}
	}
	return nil
}

func marketplace(file, name, verdict, _ string, text []byte, want manifestDetail) error {
	m, problems, err := plugin.ReadMarketplace(path.Base(file), text)
	switch {
	case verdict == "error":
		if err == nil || len(problems) == 0 {
			return fmt.Errorf("read as %q with %d offers", m.Name, len(m.Entries))
		}
		return nil
	case err != nil:
		return err
	case m.Name != name || len(m.Entries) != want.N:
		return fmt.Errorf("read %q with %d offers, problems %v", m.Name, len(m.Entries), problems)
	}
	for _, e := range m.Entries {
		if (e.Folder == "") == (e.Remote == "") {
			return fmt.Errorf("the offer %s is in %q and %q", e.Name, e.Folder, e.Remote)
		}
	}
	return nil
}
