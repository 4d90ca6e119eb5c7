package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSecretLines(t *testing.T) {
	got := SecretLines([]byte("A=1\r\n  B = two words = 2  \nno line\n\nA=later"))
	if diff := cmp.Diff(map[string]string{"A": "later", "B": "two words = 2"}, got); diff != "" {
		t.Error(diff)
	}
}
