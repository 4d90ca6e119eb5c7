package wire

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/vak-actors/vak-actors/messages/vak/common/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Whatever comes from outside becomes an error of the catalogue with the words it came with, and one of ours comes back as
// it was sent.
func FuzzRefusal(f *testing.F) {
	f.Add("capability_revoked", "it was revoked", "do without it", int64(1500))
	f.Add("no_such_code", "%s %d", "%!", int64(-1))
	f.Add("", "", "", int64(1<<62))
	f.Fuzz(func(t *testing.T, code, reason, remedy string, retryMS int64) {
		sent := &commonv1.Refusal{Code: code, Reason: reason, Remedy: remedy, RetryAfterMs: retryMS}
		e := Error(sent)
		if !e.Code.Known() || e.Reason != reason || e.Remedy != remedy {
			t.Fatalf("%v became %+v", sent, e)
		}
		if e.RetryAfter < 0 {
			t.Fatalf("a negative wait: %s", e.RetryAfter)
		}
		if known := vakerr.Code(code).Known(); known != (string(e.Code) == code) && code != string(vakerr.Internal) {
			t.Fatalf("code %q became %s", code, e.Code)
		}
		if back := Error(Refusal(e)); back.Code != e.Code || back.Reason != e.Reason || back.Remedy != e.Remedy ||
			back.RetryAfter.Truncate(time.Millisecond) != e.RetryAfter.Truncate(time.Millisecond) {
			t.Fatalf("%+v came back as %+v", e, back)
		}
	})
}

func TestRefusalHidesForeignText(t *testing.T) {
	r := Refusal(errors.New("password=hunter2"))
	if r.GetCode() != string(vakerr.Internal) || strings.Contains(r.String(), "hunter2") {
		t.Errorf("%v", r)
	}
	hidden := vakerr.New(vakerr.ServerDied, "it died").WithCause(errors.New("password=hunter2"))
	if r := Refusal(hidden); r.GetCode() != "server_died" || strings.Contains(r.String(), "hunter2") {
		t.Errorf("%v", r)
	}
	if Refusal(nil) != nil || Error(nil) != nil {
		t.Error("no error became one")
	}
}

func TestDeltaAndProblems(t *testing.T) {
	if Delta(capability.Delta{}) != nil {
		t.Error("no difference became one")
	}
	id := func(text string) capability.ID {
		id, err := capability.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	got := Delta(capability.Delta{
		Added: []capability.ID{id("tool:a"), id("mcp:b")}, Updated: []capability.ID{id("skill:c")}, Removed: []capability.ID{id("hook:d")},
	})
	want := &commonv1.Delta{Added: []string{"tool:a", "mcp:b"}, Updated: []string{"skill:c"}, Removed: []string{"hook:d"}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("delta (-want +got):\n%s", diff)
	}
	problems := Problems([]capability.Problem{{Severity: capability.SeverityWarning, Code: "c", Path: "p", Line: 3, Message: "m", Hint: "h"}})
	if diff := cmp.Diff([]*commonv1.Problem{{Severity: "warning", Code: "c", Path: "p", Line: 3, Message: "m", Hint: "h"}}, problems, protocmp.Transform()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
