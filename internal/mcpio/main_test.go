package mcpio

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		faulttest.Cleanup()
		os.Exit(code)
	}))
}

const patience = 20 * time.Second

// server is the Spec of a fault server with the given flags over stdio. Its graces are short, since some never listen.
func server(t testing.TB, flags ...string) Spec {
	t.Helper()
	command, args := faulttest.Command(t, flags...)
	return Spec{
		Name: "fault", Command: command, Args: args, Env: childproc.Environment(nil),
		Limits: Limits{Grace: 200 * time.Millisecond},
	}
}

func httpServer(t testing.TB, flags ...string) Spec {
	t.Helper()
	return Spec{Name: "fault", Transport: HTTP, URL: faulttest.HTTP(t, flags...)}
}

func dial(t testing.TB, s Spec, h Handlers) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), s, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// call calls a tool and returns its text.
func call(t testing.TB, c *Conn, name, args string) (string, error) {
	t.Helper()
	raw, err := c.CallTool(t.Context(), name, json.RawMessage(args), CallOptions{})
	if err != nil {
		return "", err
	}
	return text(t, raw), nil
}

func mustCall(t testing.TB, c *Conn, name, args string) string {
	t.Helper()
	got, err := call(t, c, name, args)
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	return got
}

func text(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	var r struct {
		Content []struct{ Text string } `json:"content"`
	}
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Content) != 1 {
		t.Fatalf("result %s: %v", raw, err)
	}
	return r.Content[0].Text
}

func wantCode(t testing.TB, err error, code vakerr.Code) *vakerr.Error {
	t.Helper()
	if err == nil || vakerr.CodeOf(err) != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
	return vakerr.From(err)
}

func waitDone(t testing.TB, c *Conn) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatal("the end of the connection is not noticed")
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
