package turn

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

// maxExposedName is the longest exposed name, in bytes. Providers allow 64, and clients put a prefix of their own in
// front of it.
const maxExposedName = 48

const exposedSeparator = "__"

var notExposable = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// ExposedName is the name under which a server's tool is offered beside the tools of others: server__tool where that
// is short, clean and can be taken apart again; otherwise cut and cleaned, with eight hex digits of the pair's digest
// at the end. It depends on the pair alone, so it never changes with what else is there.
func ExposedName(server, tool string) string {
	plain := server + exposedSeparator + tool
	clean := notExposable.ReplaceAllString(plain, "_")
	separable := !strings.Contains(server, exposedSeparator) && !strings.HasSuffix(server, "_") && server != "" && tool != ""
	if clean == plain && len(plain) <= maxExposedName && separable {
		return plain
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return clean[:min(len(clean), maxExposedName-len(suffix))] + suffix
}

// Exposed is a server's tool under its exposed name.
type Exposed struct {
	Name   string
	Server string
	Tool   *capability.ObservedTool
}

// exposedNames is the table of one Admitted.
type exposedNames struct {
	list    []Exposed // sorted by name, without refused ones
	byName  map[string]int
	refused []Exposed // sorted by name, then server and tool
}

// newExposedNames refuses every name that more than one tool would have, so that which of them is called never depends
// on an order, and every name that a tool of the host has.
func newExposedNames(a *Admitted) exposedNames {
	var all []Exposed
	for _, server := range a.ServerNames() {
		for _, t := range a.serverTools[server] {
			all = append(all, Exposed{ExposedName(server, t.Name), server, t})
		}
	}
	slices.SortFunc(all, func(x, y Exposed) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Server, y.Server), cmp.Compare(x.Tool.Name, y.Tool.Name))
	})
	e := exposedNames{byName: make(map[string]int, len(all))}
	for i, x := range all {
		_, shadows := a.Set.Get(capability.ID{Kind: capability.KindTool, Name: x.Name})
		twice := i > 0 && all[i-1].Name == x.Name || i+1 < len(all) && all[i+1].Name == x.Name
		if shadows || twice {
			e.refused = append(e.refused, x)
			continue
		}
		e.byName[x.Name] = len(e.list)
		e.list = append(e.list, x)
	}
	return e
}

// Exposed lists the servers' tools under their exposed names, in order of names.
func (a *Admitted) Exposed() []Exposed { return a.exposed.list }

// ExposedCollisions lists the tools whose exposed name is not theirs alone. They are offered under no exposed name and
// stay callable through the broker.
func (a *Admitted) ExposedCollisions() []Exposed { return a.exposed.refused }

// ByExposedName returns the tool that has that exposed name.
func (a *Admitted) ByExposedName(name string) (Exposed, bool) {
	i, ok := a.exposed.byName[name]
	if !ok {
		return Exposed{}, false
	}
	return a.exposed.list[i], true
}
