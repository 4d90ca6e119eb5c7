package actorkit

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// What is not ours is described by its type alone: it may hold a secret.
func TestPublicReason(t *testing.T) {
	own := vakerr.New(vakerr.LedgerCorrupt, "the chain is broken").WithCause(errors.New("hunter2"))
	var list []int
	tests := []struct {
		thrown any
		want   string
	}{
		{own, "ledger_corrupt: the chain is broken"},
		{fmt.Errorf("hunter2: %w", own), "ledger_corrupt: the chain is broken"},
		{recovered(func() { _ = list[7] }), "runtime error: index out of range [7] with length 0"},
		{errors.New("hunter2"), "an error of type *errors.errorString"},
		{"hunter2", "a string was thrown"},
		{struct{ Password string }{"hunter2"}, "a struct { Password string } was thrown"},
		{&PanicError{Value: own}, "panic: ledger_corrupt: the chain is broken"},
		{&PanicError{Value: "hunter2"}, "panic: a string was thrown"},
	}
	for _, tt := range tests {
		if got := PublicReason(tt.thrown); got != tt.want {
			t.Errorf("PublicReason(%T) = %q, want %q", tt.thrown, got, tt.want)
		}
	}
	if p := (&PanicError{Value: own}); !errors.Is(p, own) || errors.Unwrap(&PanicError{Value: 1}) != nil {
		t.Error("a PanicError wraps the thrown value exactly when that is an error")
	}
}

func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}
