package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ protocol.Door = (*world)(nil)

// world is a runtime of one tenant for tests: it keeps the contract of the messages in messages/vak/session/v1, without
// actors and a ledger. Sessions are opened and closed, a dispatch is resolved against the set published last, and
// subscribers are called one at a time after each publication.
type world struct {
	tenants []string

	mu        sync.Mutex // guards what follows
	tools     map[string]*tool
	epoch     uint64
	sessions  map[string]bool // by id; false: closed
	asked     []proto.Message // every command, in order
	refuse    func(proto.Message) error
	listeners map[int]func()
	next      int

	protocol.Clients

	publishing sync.Mutex // held while subscribers are called, and while one leaves
}

// tool is one tool of a world. Its name may be server__tool, which is how it is exposed.
type tool struct {
	definition string // JSON
	run        func(ctx context.Context, arguments json.RawMessage) (string, *vakerr.Error)
}

func newWorld() *world {
	w := &world{
		tenants: []string{protocol.DefaultTenant, "other"}, tools: map[string]*tool{}, sessions: map[string]bool{},
		listeners: map[int]func(){}, epoch: 1,
	}
	w.tools["echo"] = echo
	return w
}

var echo = &tool{
	definition: `{"name":"echo","inputSchema":{"type":"object","$schema":"kept","x-unknown":[1,2.50]}}`,
	run: func(_ context.Context, arguments json.RawMessage) (string, *vakerr.Error) {
		return fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, arguments), nil
	},
}

// named is a tool that answers with its own name.
func named(name string) *tool {
	return &tool{
		definition: fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name),
		run: func(context.Context, json.RawMessage) (string, *vakerr.Error) {
			return fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, name), nil
		},
	}
}

// gate is a tool whose calls wait until they are released, or cancelled.
type gate struct {
	entered chan struct{} // one value for each call that began
	release chan struct{} // one value, or close, lets calls end
	ended   chan error    // the cause of each call that was cancelled
}

func newGate() *gate {
	return &gate{make(chan struct{}, 1000), make(chan struct{}), make(chan error, 1000)}
}

func (g *gate) tool(name string) *tool {
	t := named(name)
	answer := t.run
	t.run = func(ctx context.Context, arguments json.RawMessage) (string, *vakerr.Error) {
		g.entered <- struct{}{}
		select {
		case <-g.release:
			return answer(ctx, arguments)
		case <-ctx.Done():
			g.ended <- context.Cause(ctx)
			return "", vakerr.From(context.Cause(ctx))
		}
	}
	return t
}

// publish changes the set and tells subscribers.
func (w *world) publish(change func(tools map[string]*tool)) {
	w.mu.Lock()
	change(w.tools)
	w.epoch++
	w.mu.Unlock()
	w.announce()
}

// announce tells subscribers of a publication.
func (w *world) announce() {
	w.publishing.Lock()
	defer w.publishing.Unlock()
	w.mu.Lock()
	var all []func()
	for _, f := range w.listeners {
		all = append(all, f)
	}
	w.mu.Unlock()
	for _, f := range all {
		f()
	}
}

func (w *world) Subscribe(tenant string, changed func()) (func(), error) {
	if !slices.Contains(w.tenants, tenant) {
		return nil, vakerr.New(vakerr.UnknownTenant, "there is no tenant %q", tenant)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	n := w.next
	w.listeners[n] = changed
	return func() {
		w.publishing.Lock()
		defer w.publishing.Unlock()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.listeners, n)
	}, nil
}

// subscribers is how many listen.
func (w *world) subscribers() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.listeners)
}

func (w *world) Ask(ctx context.Context, command proto.Message) (proto.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, vakerr.From(context.Cause(ctx))
	}
	w.mu.Lock()
	w.asked = append(w.asked, command)
	refuse := w.refuse
	w.mu.Unlock()
	if refuse != nil {
		if err := refuse(command); err != nil {
			return nil, err
		}
	}
	switch c := command.(type) {
	case *sessionv1.OpenSession:
		return w.open(c)
	case *sessionv1.CloseSession:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sessions[c.GetSessionId()] = false
		return &sessionv1.CloseSessionResult{}, nil
	case *sessionv1.ListTools:
		return w.list(c)
	case *sessionv1.Dispatch:
		return w.dispatch(ctx, c)
	}
	return nil, vakerr.New(vakerr.Internal, "no handler for %T", command)
}

func (w *world) open(c *sessionv1.OpenSession) (proto.Message, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	isOpen, known := w.sessions[c.GetSessionId()]
	if known && !isOpen {
		return nil, vakerr.New(vakerr.SessionClosed, "the session is closed")
	}
	w.sessions[c.GetSessionId()] = true
	return &sessionv1.OpenSessionResult{
		Session: &sessionv1.Session{Tenant: c.GetTenant(), SessionId: c.GetSessionId(), Channel: c.GetChannel(), State: "live"}, Resumed: known,
	}, nil
}

// session is the error for a session that cannot be asked.
func (w *world) session(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch isOpen, known := w.sessions[id]; {
	case !known:
		return vakerr.New(vakerr.SessionNotFound, "there is no session %q", id)
	case !isOpen:
		return vakerr.New(vakerr.SessionClosed, "the session %q is closed", id)
	}
	return nil
}

func (w *world) list(c *sessionv1.ListTools) (proto.Message, error) {
	if err := w.session(c.GetSessionId()); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var definitions []string
	for name, t := range w.tools {
		server, own, exposed := strings.Cut(name, "__")
		definition := t.definition
		switch {
		case c.GetServer() != "" && c.GetServer() != server, c.GetServer() == "" && exposed && c.GetSurface() == SurfaceSearch:
			continue
		case c.GetServer() != "":
			definition = strings.Replace(definition, name, own, 1)
		}
		definitions = append(definitions, definition)
	}
	slices.Sort(definitions)
	text := "[" + strings.Join(definitions, ",") + "]"
	return &sessionv1.ListToolsResult{ToolsJson: []byte(text), Digest: capability.ContentDigest([]byte(text)), Epoch: w.epoch}, nil
}

func (w *world) dispatch(ctx context.Context, c *sessionv1.Dispatch) (proto.Message, error) {
	if err := w.session(c.GetSessionId()); err != nil {
		return nil, err
	}
	w.mu.Lock()
	t, ok := w.tools[strings.Replace(c.GetName(), "/", "__", 1)]
	epoch := w.epoch
	w.mu.Unlock()
	result := &sessionv1.DispatchResult{CallId: "c1", Epoch: epoch}
	refused := vakerr.New(vakerr.UnknownTool, "there is no tool %q", c.GetName()).WithRemedy("look for a tool with find_tools")
	if ok {
		var text string
		if text, refused = t.run(ctx, c.GetArgumentsJson()); refused == nil {
			passed, err := op.Passed([]byte(text))
			if err != nil {
				refused = vakerr.From(err)
			}
			result.ResultJson, result.Failed = passed.Content, passed.IsError
		}
	}
	if refused != nil {
		result.Refusal = wire.Refusal(refused)
	}
	return result, nil
}

// lastClient is the client that the last dispatch named.
func (w *world) lastClient() string {
	all := commands[*sessionv1.Dispatch](w)
	return all[len(all)-1].GetClient()
}

// commands are the commands of one type that were asked so far.
func commands[C proto.Message](w *world) []C {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []C
	for _, m := range w.asked {
		if c, ok := m.(C); ok {
			all = append(all, c)
		}
	}
	return all
}

// attachTest is a session of w, closed at the test's end; told receives what it says unasked.
func attachTest(t *testing.T, w *world, at endpoint) (s *session, told chan string) {
	t.Helper()
	told = make(chan string, 100)
	s, err := newFront(w, "test", nil).attach(t.Context(), at, newSessionKey(), outletFunc(func(frame []byte) { told <- string(frame) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close(errDeleted) })
	return s, told
}

// outletFunc is an outlet that is always read.
type outletFunc func(frame []byte)

func (f outletFunc) write(frame []byte)      { f(frame) }
func (f outletFunc) offer(frame []byte) bool { f(frame); return true }

// ask has a session answer one message.
func ask(t *testing.T, s *session, raw string) string {
	t.Helper()
	m, bad := decode([]byte(raw))
	if bad != nil {
		return string(bad.frame(m.ID))
	}
	answer, work := s.accept(m, nil)
	if work != nil {
		answer = work()
	}
	return string(answer)
}

func callText(id any, name string, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, arguments)
}
