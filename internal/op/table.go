package op

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

// Table is an immutable collection of ops by id.
type Table struct {
	ops  []Op // in order of ids
	byID map[string]int
}

// NewTable collects ops. Two of one id, one without a function and one that is no tool are errors of the program.
func NewTable(ops ...Op) (*Table, error) {
	t := &Table{ops: slices.Clone(ops), byID: make(map[string]int, len(ops))}
	slices.SortStableFunc(t.ops, func(a, b Op) int { return strings.Compare(a.ID(), b.ID()) })
	for i := range t.ops {
		o := &t.ops[i]
		if err := o.Declaration.Check(); err != nil {
			return nil, err
		}
		if o.Declaration.ID.Kind != capability.KindTool {
			return nil, fmt.Errorf("op %s is declared as a %s: only a tool has an op", o.ID(), o.Declaration.ID.Kind)
		}
		if o.Run == nil {
			return nil, fmt.Errorf("op %s has no function", o.ID())
		}
		if _, twice := t.byID[o.ID()]; twice {
			return nil, fmt.Errorf("op %s is registered twice", o.ID())
		}
		t.byID[o.ID()] = i
	}
	return t, nil
}

// Lookup returns the op of that id. The caller must not change it.
func (t *Table) Lookup(id string) (*Op, bool) {
	i, ok := t.byID[id]
	if !ok {
		return nil, false
	}
	return &t.ops[i], true
}

// Declarations returns the declarations of all ops in order of ids.
func (t *Table) Declarations() []capability.Declaration {
	all := make([]capability.Declaration, len(t.ops))
	for i := range t.ops {
		all[i] = t.ops[i].Declaration
	}
	return all
}
