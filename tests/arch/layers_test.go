package arch

import (
	"strings"
	"testing"
)

// layer is a height in the import map. A package imports what lies lower; the peers of some layers may also import each
// other.
type layer int

// The layers, lowest first. pure decides; services own time, processes and storage; actors own state; fronts speak
// protocols; wiring builds it all.
const (
	pure layer = iota
	services
	actors
	fronts
	wiring
	programs
	outside // tests and examples: they may import anything, and nothing of the product imports them
)

func (l layer) String() string {
	return [...]string{"pure", "services", "actors", "fronts", "wiring", "programs", "outside"}[l]
}

// peers reports whether packages of the layer may import each other.
func (l layer) peers() bool { return l == pure || l == services || l == outside }

// rooms is the import map: each folder stands for itself and what is below it.
var rooms = map[string]layer{
	"capability":         pure,
	"internal/approval":  pure,
	"internal/backoff":   pure,
	"internal/config":    pure,
	"internal/declare":   pure,
	"internal/expand":    pure,
	"internal/hook":      pure,
	"internal/ledger":    pure,
	"internal/lifecycle": pure,
	"internal/op":        pure,
	"internal/phrase":    pure,
	"internal/pins":      pure,
	"internal/plugin":    pure,
	"internal/policy":    pure,
	"internal/schema":    pure,
	"internal/turn":      pure,
	"internal/vakerr":    pure,

	"internal/actorkit":    services,
	"internal/artifact":    services,
	"internal/builtin":     services,
	"internal/childproc":   services,
	"internal/dispatch":    services,
	"internal/hookrun":     services,
	"internal/importer":    services,
	"internal/mcpio":       services,
	"internal/pluginstore": services,
	"internal/protocol":    services,
	"internal/rootfs":      services,
	"internal/skillfiles":  services,
	"internal/store":       services,
	"internal/wire":        services,
	"messages":             services,
	"supervision":          services,

	"actors": actors,

	"internal/api":     fronts,
	"internal/gateway": fronts,

	"host": wiring,

	"cmd": programs,

	"examples": outside,
	"tests":    outside,
}

// room returns the entry of rooms that holds the package.
func room(rel string) (string, layer, bool) {
	for dir, l := range rooms {
		if under(rel, dir) {
			return dir, l, true
		}
	}
	return "", 0, false
}

// unit is what may import itself freely: the room, or for actors one actor package.
func unit(rel string) string {
	dir, l, _ := room(rel)
	if l != actors {
		return dir
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(rel, dir+"/"), "/")
	return dir + "/" + name
}

// forbidden says why a package may not import another, or "".
func forbidden(from, to string) string {
	_, f, _ := room(from)
	_, t, known := room(to)
	switch {
	case !known:
		return "" // TestEveryPackageHasARoom speaks of it
	case unit(from) == unit(to):
		return ""
	case t == outside && f != outside:
		return "the product does not depend on its tests and examples"
	case f == outside:
		return ""
	case t > f:
		return "imports point down only: " + f.String() + " lies below " + t.String()
	case t == f && !f.peers():
		return "packages of the layer " + f.String() + " never import each other: they meet through messages"
	case f == fronts && t == actors:
		return "a front speaks to actors through messages and the addresses host hands it"
	}
	return ""
}

func TestEveryPackageHasARoom(t *testing.T) {
	for _, p := range packages(t) {
		if _, _, ok := room(p.Rel); !ok {
			t.Errorf("%s has no room: add it to rooms in tests/arch/layers_test.go, to .golangci.yml and to the code map in ARCHITECTURE.md", p.Rel)
		}
	}
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		for _, to := range ours(p.Imports) {
			if why := forbidden(p.Rel, to); why != "" {
				t.Errorf("%s imports %s: %s", p.Rel, to, why)
			}
		}
	}
}

// TestForbidden makes sure that the rule above can fail at all.
func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"internal/turn", "capability", true},
		{"internal/policy", "internal/turn", true},
		{"internal/turn", "internal/store", false},
		{"capability", "messages/vak/v1", false},
		{"internal/mcpio", "internal/childproc", true},
		{"internal/mcpio", "actors/pool", false},
		{"actors/session", "actors/session/internal/x", true},
		{"actors/session", "actors/sessions", false},
		{"actors/session", "actors/registry", false},
		{"actors/session", "internal/actorkit", true},
		{"internal/gateway", "actors/session", false},
		{"internal/gateway", "internal/api", false},
		{"host", "actors/session", true},
		{"actors/session", "host", false},
		{"cmd/vak-actors", "host", true},
		{"host", "tests/realparts", false},
		{"tests/faults", "host", true},
	} {
		if why := forbidden(c.from, c.to); (why == "") != c.ok {
			t.Errorf("%s imports %s: allowed %v, want %v (%s)", c.from, c.to, why == "", c.ok, why)
		}
	}
}

// sole lists what only certain rooms may import. Tests of other packages may where inTests says so.
var sole = []struct {
	prefix  string
	rooms   []string
	inTests bool
	why     string
}{
	{
		"github.com/asynkron/protoactor-go",
		[]string{"internal/actorkit"},
		false,
		"internal/actorkit wraps protoactor and its hazards",
	},
	{
		"github.com/mark3labs/mcp-go",
		[]string{"internal/mcpio", "internal/gateway"},
		true,
		"internal/mcpio is the client side of MCP and internal/gateway the server side",
	},
	{
		"os/exec",
		[]string{"internal/childproc"},
		true,
		"internal/childproc starts and ends processes, so that none is left behind",
	},
	{
		"modernc.org/sqlite",
		[]string{"internal/store"},
		true,
		"internal/store owns the database",
	},
	{
		"os/signal",
		[]string{"cmd"},
		true,
		"the program alone hears signals; everything else is stopped by its owner",
	},
}

func TestSoleImporters(t *testing.T) {
	for _, p := range packages(t) {
		_, at, _ := room(p.Rel)
		for _, rule := range sole {
			allowed := at == outside && rule.inTests
			for _, r := range rule.rooms {
				allowed = allowed || under(p.Rel, r)
			}
			if allowed {
				continue
			}
			imports := p.Imports
			if !rule.inTests {
				imports = append(append(append([]string{}, imports...), p.TestImports...), p.XTestImports...)
			}
			for _, i := range imports {
				if under(i, rule.prefix) {
					t.Errorf("%s imports %s: %s", p.Rel, i, rule.why)
				}
			}
		}
	}
}
