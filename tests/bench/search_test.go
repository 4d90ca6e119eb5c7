package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/tests/realparts"
)

// catalogs are the tools of real servers, as the pool would have observed them; none where this machine has none.
func catalogs(b *testing.B) (servers []capability.Declaration, tools int) {
	b.Helper()
	shared := os.Getenv(realparts.Shared)
	if shared == "" {
		b.Logf("not run: %s is not set", realparts.Shared)
		return nil, 0
	}
	files, err := filepath.Glob(filepath.Join(shared, "catalogs", "*.json"))
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range files {
		if filepath.Base(path) == "index.json" { // tells about the others
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		catalog := observe(b, path, text)
		tools += len(catalog)
		servers = append(servers, capability.Declaration{
			ID: capability.ID{Kind: capability.KindMCP, Name: name}, Origin: capability.Origin{Kind: capability.OriginWorkspace}, Source: "vak.toml",
			Digest: capability.ContentDigest(text),
			Config: &capability.Server{
				Transport: capability.TransportStdio, Command: "true", Observation: &capability.Observation{Catalog: catalog},
			},
		})
	}
	return servers, tools
}

func observe(b *testing.B, path string, text []byte) []capability.ObservedTool {
	b.Helper()
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(text, &list); err != nil {
		b.Fatalf("%s: %v", path, err)
	}
	all := make([]capability.ObservedTool, len(list.Tools))
	for i, raw := range list.Tools {
		if err := json.Unmarshal(raw, &all[i]); err != nil {
			b.Fatalf("%s: %v", path, err)
		}
		all[i].Definition = raw
	}
	return all
}

// BenchmarkFindTools searches the catalogs of all real servers at hand: what building the index costs once an epoch, and
// what a query costs.
func BenchmarkFindTools(b *testing.B) {
	servers, tools := catalogs(b)
	if servers == nil {
		return
	}
	set, err := capability.NewSet(servers, nil)
	if err != nil {
		b.Fatal(err)
	}
	current := everything(b)
	admitted := turn.Admit(turn.AdmitInput{
		View: &turn.View{Snapshot: capability.Snapshot{Epoch: 1, Set: set}, Policy: current}, Engine: current.Engine,
	})
	docs := admitted.Docs()
	b.Run("index", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			turn.NewIndex(docs)
		}
		b.ReportMetric(float64(tools), "tools")
	})
	index := turn.NewIndex(docs)
	for _, query := range []string{"create an issue", "list files in a folder", "query a postgres database and plot the result"} {
		b.Run("query/"+strings.ReplaceAll(query, " ", "-"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(index.Search(query, 5)) == 0 {
					b.Fatal("nothing was found")
				}
			}
		})
	}
}
