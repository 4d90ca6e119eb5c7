package vakerr

import (
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestFromHidesForeignText(t *testing.T) {
	e := From(errors.New("password=hunter2"))
	if e.Code != Internal || strings.Contains(e.Error()+e.Remedy, "hunter2") {
		t.Fatalf("From(foreign) = %v, remedy %q: the foreign text must stay private", e, e.Remedy)
	}
	if From(nil) != nil {
		t.Fatal("From(nil) must be nil")
	}
}

func TestChain(t *testing.T) {
	base := New(ServerDied, "server %q exited", "git")
	err := base.WithRemedy("run `vak-actors servers logs %s`", "git").WithCause(io.EOF)
	if base.Remedy != "" {
		t.Fatal("With must not change its receiver")
	}
	if !errors.Is(err, io.EOF) || !errors.Is(err, New(ServerDied, "")) || errors.Is(err, New(Internal, "")) {
		t.Fatalf("errors.Is does not follow code and cause of %v", err)
	}
	if got, want := err.Error(), `server_died: server "git" exited`; got != want {
		t.Fatalf("Error() = %q, want %q", got, want)
	}
}

// Every code constant of codes.go has a row in kindOf, and every kind has a complete row in the table.
func TestCatalogueComplete(t *testing.T) {
	src, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\s*\w+\s+Code = "([a-z_]+)"`).FindAllStringSubmatch(string(src), -1)
	if len(declared) != len(kindOf) {
		t.Errorf("%d codes declared, %d have a kind", len(declared), len(kindOf))
	}
	for _, d := range declared {
		if !Code(d[1]).Known() {
			t.Errorf("code %s has no kind", d[1])
		}
	}
	for k := range table {
		if r := Kind(k).traits(); r.name == "" || r.exit == 0 || r.connect == "" || r.jsonrpc == 0 {
			t.Errorf("kind %d: row %+v is not complete", k, r)
		}
	}
}
