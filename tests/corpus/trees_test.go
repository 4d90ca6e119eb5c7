package corpus

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/pluginstore"
)

// Whole plugins, installed as an operator would: what each brings, each row exactly.
func TestPluginTrees(t *testing.T) {
	dir := corpusDir(t)
	if dir == "" {
		return
	}
	store := pluginstore.Open(t.TempDir())
	checked := 0
	for _, row := range table(t, filepath.Join(dir, "expect_trees.tsv")) {
		tree := filepath.Join(dir, filepath.FromSlash(row[0]))
		if _, err := os.Stat(tree); err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		checked++
		_, c, err := store.Install(t.Context(), pluginstore.Request{Source: tree, Scope: "user"})
		if err != nil {
			if strings.Contains(err.Error(), "another content") {
				other := pluginstore.Open(t.TempDir())
				_, c, err = other.Install(t.Context(), pluginstore.Request{Source: tree, Scope: "user"})
			}
			if err != nil {
				t.Errorf("%s: %v", row[0], err)
				continue
			}
		}
		if c.Manifest.Name != row[1] {
			t.Errorf("%s: the plugin is called %q, want %q", row[0], c.Manifest.Name, row[1])
		}
		got := contributions(c)
		for i, kind := range []string{"skills", "commands", "agents"} {
			want := list(row[3+2*i])
			if err := sameNames(got[kind], want, row[2+2*i]); err != nil {
				t.Errorf("%s: %s: %v", row[0], kind, err)
			}
		}
		if n := fmt.Sprint(len(got["handlers"])); n != row[8] {
			t.Errorf("%s: %s hook handlers, want %s", row[0], n, row[8])
		}
		if err := sameNames(got["events"], list(row[9]), ""); err != nil {
			t.Errorf("%s: hook events: %v", row[0], err)
		}
		if err := sameNames(got["servers"], list(row[11]), row[10]); err != nil {
			t.Errorf("%s: servers: %v", row[0], err)
		}
		if t.Failed() {
			t.Logf("%s: problems %v", row[0], c.Problems)
		}
	}
	t.Logf("%d trees", checked)
}

func list(cell string) []string {
	if cell == "" {
		return nil
	}
	return strings.Split(cell, ", ")
}

func sameNames(got, want []string, count string) error {
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	if n, err := strconv.Atoi(count); err == nil && n != len(got) || !slices.Equal(got, want) {
		return fmt.Errorf("got %q, want %s: %q", got, count, want)
	}
	return nil
}

// contributions are the names of what a plugin brings, and of what it has and is not used. A server without an address counts,
// too: the table names it, and the operator is told that it is not configured.
func contributions(c *pluginstore.Content) map[string][]string {
	got := map[string][]string{}
	add := func(kind, name string) { got[kind] = append(got[kind], name) }
	for _, d := range c.Read {
		switch config := d.Config.(type) {
		case *capability.Skill:
			add("skills", d.ID.Name)
		case *capability.Command:
			add("commands", d.ID.Name)
		case *capability.Server:
			add("servers", d.ID.Name)
		case *capability.Hook:
			add("handlers", d.ID.Name)
			if !slices.Contains(got["events"], config.Event) {
				add("events", config.Event)
			}
		}
	}
	for _, p := range c.Problems {
		name := ""
		if _, err := fmt.Sscanf(p.Message, "server %q has an empty url", &name); err == nil && p.Code == "server_url" {
			add("servers", name)
		}
	}
	for _, u := range c.Manifest.Unsupported {
		if u.Kind == "agents" {
			for _, f := range u.Names {
				add("agents", strings.TrimSuffix(path.Base(f), ".md"))
			}
		}
	}
	return got
}
