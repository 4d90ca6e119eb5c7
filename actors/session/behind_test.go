package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/turn"
)

// slowLedger takes every write and says that it is behind while it holds some back.
type slowLedger struct {
	Ledger
	hold atomic.Bool

	mu   sync.Mutex // guards held
	held []func()
}

func (l *slowLedger) Submit(w ledger.Write, _ bool, done func(ledger.Outcome)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := ledger.Outcome{}
	switch w := w.(type) {
	case ledger.Open:
		_, out.Head, out.Err = w.Record()
	case ledger.Append:
		out.Head = w.Last()
	}
	if l.hold.Load() {
		l.held = append(l.held, func() { done(out) })
		return
	}
	done(out)
}

func (l *slowLedger) Behind() bool { return l.hold.Load() }

// letGo commits what was held back and returns how much that was.
func (l *slowLedger) letGo() int {
	l.mu.Lock()
	held := l.held
	l.held = nil
	l.mu.Unlock()
	for _, done := range held {
		done()
	}
	return len(held)
}

// Whoever begins and ends turns faster than the disk takes them waits, and does not fill the queue that all sessions
// share.
func TestTurnsWaitForALedgerThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLedger{}
		system, directory := startDirectory(t, l)
		ask := func(m proto.Message) <-chan proto.Message {
			answer := make(chan proto.Message, 1)
			go func() {
				result, err := actorkit.Ask[proto.Message](t.Context(), directory, Command{Message: m})
				if err != nil {
					t.Error(err)
				}
				answer <- result
			}()
			synctest.Wait()
			return answer
		}
		waits := func(what string, answer <-chan proto.Message) proto.Message {
			t.Helper()
			if len(answer) > 0 {
				t.Errorf("%s was answered while the ledger was behind", what)
			}
			l.letGo()
			synctest.Wait()
			if len(answer) == 0 {
				t.Fatalf("%s was not answered when it was durable", what)
			}
			return <-answer
		}
		<-ask(&sessionv1.OpenSession{SessionId: "s"})
		l.hold.Store(true)
		begun := waits("the begin", ask(&sessionv1.BeginTurn{SessionId: "s"})).(*sessionv1.BeginTurnResult)
		waits("the end", ask(&sessionv1.EndTurn{SessionId: "s", TurnId: begun.GetTurnId()}))
		l.hold.Store(false)
		begun = (<-ask(&sessionv1.BeginTurn{SessionId: "s"})).(*sessionv1.BeginTurnResult)
		<-ask(&sessionv1.EndTurn{SessionId: "s", TurnId: begun.GetTurnId()})
		shutdown(t, system)
	})
}

// A crowd that falls idle at once leaves in parties, so that its entries do not fill the queue of the ledger.
func TestPassivationIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLedger{}
		system, directory := startDirectory(t, l)
		const crowd = 2*maxParting + 10
		for i := range crowd {
			if _, err := actorkit.Ask[proto.Message](t.Context(), directory, Command{
				Message: &sessionv1.OpenSession{SessionId: fmt.Sprint("s", i)},
			}); err != nil {
				t.Fatal(err)
			}
		}
		l.hold.Store(true)
		time.Sleep(2 * DefaultIdleTTL)
		var parties []int
		for {
			synctest.Wait()
			n := l.letGo()
			if n == 0 {
				break
			}
			parties = append(parties, n)
		}
		if want := []int{maxParting, maxParting, 10}; !slices.Equal(parties, want) {
			t.Errorf("%v sessions left at a time, want %v", parties, want)
		}
		if live := system.Stats().Live; live != 1 {
			t.Errorf("%d actors live, want the directory alone", live)
		}
		shutdown(t, system)
	})
}

// startDirectory starts a directory over an empty set. It runs in a bubble.
func startDirectory(t *testing.T, l Ledger) (*actorkit.System, actorkit.Ref) {
	t.Helper()
	engine, _ := policy.CompileEngine(policy.Host{}, policy.PermissionRules{})
	set, err := capability.NewSet(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	system := actorkit.NewSystem(actorkit.Options{})
	directory, err := system.Spawn("sessions", DirectoryProps(Config{
		Pipeline: &dispatch.Pipeline{},
		Tenant:   "default", Owner: "test", Ledger: l, Admissions: &dispatch.Admissions{}, Reconciler: &protocol.Address{},
		Residents: &sync.Map{},
		Gate: turn.NewGate(turn.View{
			Snapshot: capability.Snapshot{Epoch: 1, Set: set}, Policy: &policy.Current{Engine: engine}, History: capability.NewHistory(nil),
		}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	return system, directory
}

func shutdown(t *testing.T, system *actorkit.System) {
	t.Helper()
	if err := system.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
