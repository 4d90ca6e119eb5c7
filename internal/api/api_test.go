package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"
	vakv1 "github.com/vak-actors/vak-actors/messages/vak/v1"
	"github.com/vak-actors/vak-actors/messages/vak/v1/vakv1connect"

	"github.com/vak-actors/vak-actors/internal/approval"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// door answers every command with the empty result of its name, or with err, and keeps what it was asked.
type door struct {
	protocol.Door
	err  error
	wait bool // until the caller's context ends

	mu    sync.Mutex // guards the fields below
	asked []proto.Message
	left  time.Duration // until the deadline of the last question
}

func (d *door) Ask(ctx context.Context, command proto.Message) (proto.Message, error) {
	d.mu.Lock()
	d.asked = append(d.asked, command)
	if deadline, ok := ctx.Deadline(); ok {
		d.left = time.Until(deadline)
	}
	d.mu.Unlock()
	if d.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if d.err != nil {
		return nil, d.err
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(command.ProtoReflect().Descriptor().FullName() + "Result")
	if err != nil {
		return nil, err
	}
	return kind.New().Interface(), nil
}

func serve(t *testing.T, o Options) (base string, client *http.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(NewHandler(o))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, server.Client()
}

// inMemory is a client of a handler without a network.
func inMemory(o Options) *Client {
	return NewClient(ClientOptions{HTTP: NewMemory(NewHandler(o)), Base: "http://memory"})
}

// TestEveryMethodReachesTheDoor walks the services: no method is forgotten, none asks for another.
func TestEveryMethodReachesTheDoor(t *testing.T) {
	d := &door{}
	base, client := serve(t, Options{Door: d})
	methods := 0
	all := vakv1.File_vak_v1_api_proto.Services()
	for i := range all.Len() {
		for j := range all.Get(i).Methods().Len() {
			m := all.Get(i).Methods().Get(j)
			response, err := client.Post(base+"/"+string(all.Get(i).FullName())+"/"+string(m.Name()), "application/json", strings.NewReader(`{"tenant":"t1"}`))
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Errorf("%s: %d %s", m.FullName(), response.StatusCode, text)
				continue
			}
			last := d.asked[len(d.asked)-1]
			if got := last.ProtoReflect().Descriptor().FullName(); got != m.Input().FullName() || tenantOf(last) != "t1" {
				t.Errorf("%s asked the door for %s of tenant %s", m.FullName(), got, tenantOf(last))
			}
			methods++
		}
	}
	if methods == 0 || len(d.asked) != methods {
		t.Errorf("%d methods, %d questions", methods, len(d.asked))
	}
}

func TestEveryProtocolOnOneHandler(t *testing.T) {
	d := &door{}
	base, _ := serve(t, Options{Door: d})
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	want := &sessionv1.Dispatch{SessionId: "s", Name: "read", ArgumentsJson: []byte(`{"path":"a"}`)}
	for name, option := range map[string]connect.ClientOption{
		"gRPC": connect.WithGRPC(), "gRPC-Web": connect.WithGRPCWeb(), "Connect": connect.WithHTTPGet(), "JSON": connect.WithProtoJSON(),
	} {
		client := vakv1connect.NewSessionServiceClient(&http.Client{Transport: transport}, base, option)
		if _, err := client.Dispatch(t.Context(), connect.NewRequest(want)); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(proto.Message(want), d.asked[len(d.asked)-1], protocmp.Transform()); diff != "" {
			t.Errorf("%s (-sent +asked):\n%s", name, diff)
		}
	}
}

// TestErrorsComeBackWhole: whatever the door says, the client's error is the same, in memory and over a network.
func TestErrorsComeBackWhole(t *testing.T) {
	d := &door{}
	base, network := serve(t, Options{Door: d})
	clients := map[string]*Client{"memory": inMemory(Options{Door: d}), "network": NewClient(ClientOptions{HTTP: network, Base: base})}
	codes := vakerr.Codes()
	rapid.Check(t, func(t *rapid.T) {
		want := vakerr.New(rapid.SampledFrom(codes).Draw(t, "code"), "%s", rapid.StringN(1, 200, 400).Draw(t, "reason")).
			WithRemedy("%s", rapid.StringN(0, 200, 400).Draw(t, "remedy")).
			WithRetryAfter(time.Duration(rapid.IntRange(0, 1e6).Draw(t, "wait")) * time.Millisecond)
		d.err = want.WithCause(errors.New("password=hunter2"))
		for name, client := range clients {
			_, err := Call(t.Context(), client.Registry.GetReport, &registryv1.GetReport{})
			got := vakerr.From(err)
			if got.Code != want.Code || got.Reason != want.Reason || got.Remedy != want.Remedy || got.RetryAfter != want.RetryAfter {
				t.Fatalf("%s: %#v became %#v", name, want, got)
			}
		}
	})
}

func TestForeignTextStaysInside(t *testing.T) {
	d := &door{err: errors.New("password=hunter2")}
	base, client := serve(t, Options{Door: d})
	response, err := client.Post(base+"/vak.v1.RegistryService/GetReport", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "internal_error") {
		t.Errorf("the answer is %s", text)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	d := &door{}
	client := inMemory(Options{Door: d})
	_, err := Call(t.Context(), client.Session.Dispatch, &sessionv1.Dispatch{ArgumentsJson: make([]byte, MaxRequestBytes+1)})
	if vakerr.CodeOf(err) != vakerr.TooLarge || len(d.asked) != 0 {
		t.Errorf("%v after %d questions, want too_large and none", err, len(d.asked))
	}
	if _, err = Call(t.Context(), client.Session.Dispatch, &sessionv1.Dispatch{ArgumentsJson: make([]byte, MaxRequestBytes-1024)}); err != nil {
		t.Errorf("a request under the limit: %v", err)
	}
}

func TestDeadlines(t *testing.T) {
	d := &door{}
	base, network := serve(t, Options{Door: d})
	client := NewClient(ClientOptions{HTTP: network, Base: base})
	for _, c := range []struct {
		name   string
		client time.Duration
		call   int64 // timeout_ms
		want   time.Duration
	}{
		{"none of its own: a person may have to answer first", 0, 0, DefaultTimeout + approval.MaxTimeout},
		{"the client's", time.Minute, 0, time.Minute},
		{"a call that may take long", 0, 3_600_000, time.Hour + answerTime},
		{"a call that may not", 0, 1000, DefaultTimeout},
	} {
		ctx, done := t.Context(), context.CancelFunc(func() {})
		if c.client > 0 {
			ctx, done = context.WithTimeout(ctx, c.client)
		}
		_, err := Call(ctx, client.Session.Dispatch, &sessionv1.Dispatch{TimeoutMs: c.call})
		done()
		if err != nil || d.left > c.want || d.left < c.want-30*time.Second {
			t.Errorf("%s: %v were left, want %v; %v", c.name, d.left, c.want, err)
		}
	}

	d.wait = true
	ctx, done := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer done()
	if _, err := Call(ctx, client.Registry.GetReport, &registryv1.GetReport{}); vakerr.CodeOf(err) != vakerr.DeadlineExceeded {
		t.Errorf("after the deadline: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Call(gone, client.Registry.GetReport, &registryv1.GetReport{}); vakerr.CodeOf(err) != vakerr.Canceled {
		t.Errorf("after the caller went: %v", err)
	}
}

func TestAuthorize(t *testing.T) {
	d := &door{}
	o := Options{Door: d, Authorize: func(tenant string, header http.Header) error {
		if header.Get("Authorization") != "Bearer of-"+tenant {
			return vakerr.New(vakerr.Unauthenticated, "no").WithRemedy("bring a token")
		}
		return nil
	}}
	call := func(token, tenant string) error {
		client := NewClient(ClientOptions{HTTP: NewMemory(NewHandler(o)), Base: "http://memory", Token: token})
		_, err := Call(t.Context(), client.Registry.GetReport, &registryv1.GetReport{Tenant: tenant})
		return err
	}
	for _, c := range []struct{ token, tenant string }{{"", ""}, {"of-a", ""}, {"of-a", "b"}, {"of-default", "a"}} {
		if err := call(c.token, c.tenant); vakerr.CodeOf(err) != vakerr.Unauthenticated || vakerr.From(err).Remedy != "bring a token" {
			t.Errorf("token %q for tenant %q: %v", c.token, c.tenant, err)
		}
	}
	if err := connectError(vakerr.New(vakerr.Unauthenticated, "no")); err.Code() != connect.CodeUnauthenticated {
		t.Errorf("a client without a token is told %s, want unauthenticated (401)", err.Code())
	}
	if len(d.asked) != 0 {
		t.Errorf("%d questions reached the door", len(d.asked))
	}
	for _, c := range []struct{ token, tenant string }{{"of-default", ""}, {"of-default", "default"}, {"of-a", "a"}} {
		if err := call(c.token, c.tenant); err != nil {
			t.Errorf("token %q for tenant %q: %v", c.token, c.tenant, err)
		}
	}
}

func TestNobodyAndSomebodyElse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for base, want := range map[string]string{nobody: "no daemon answers at " + nobody, other.URL: "does not speak vak.v1"} {
		client := NewClient(ClientOptions{Base: base})
		_, err := Call(t.Context(), client.Registry.GetReport, &registryv1.GetReport{})
		if e := vakerr.From(err); e.Code != vakerr.DaemonUnreachable || !strings.Contains(e.Reason, want) || e.Remedy == "" {
			t.Errorf("%s: %v, want %q", base, err, want)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
