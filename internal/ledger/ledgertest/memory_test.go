package ledgertest

import (
	"testing"

	"github.com/vak-actors/vak-actors/internal/ledger"
)

func TestMemoryConforms(t *testing.T) {
	Conformance(t, func(testing.TB) ledger.Store { return new(Memory) })
}
