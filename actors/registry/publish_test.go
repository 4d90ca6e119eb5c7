package registry

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V21: a number is durable before anybody sees it; until then there is no set at all, and nobody can begin a turn.
func TestEpochIsDurableBeforeItIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &values{})
		release := n.values.blocked(epochKey)
		declared := later[*protocol.DeclareResult](n, pass(tool("a", "one")))
		if v := n.gate.View(); v.Snapshot.Epoch != 0 || v.Snapshot.Set != nil || v.Policy != nil || n.epochs() != nil {
			t.Fatalf("shown before it is durable: %+v", v)
		}
		if _, err := ask[*registryv1.FindResult](n, &registryv1.Find{Query: "a"}); vakerr.CodeOf(err) != vakerr.CapabilityUnavailable {
			t.Errorf("a search before the first publication: %v", err)
		}
		release(nil)
		if a := <-declared; a.err != nil || *a.result != (protocol.DeclareResult{Epoch: 1, Changed: true}) {
			t.Fatalf("%+v", a)
		}
		v := n.gate.View()
		if v.Snapshot.Epoch != 1 || v.Snapshot.Set.Len() != 1 || v.Policy != open || n.values.remembered(t).Epoch.Epoch != 1 {
			t.Errorf("%+v", v)
		}
		if diff := cmp.Diff([]uint64{1}, n.epochs()); diff != "" {
			t.Error(diff)
		}
	})
}

// V88: an unchanged world, declared 25 times, moves nothing and writes nothing.
func TestQuietWorldIsNotPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &values{})
		n.declare(tool("a", "one"), server("s", "x"))
		shown := n.gate.View().Snapshot
		n.values.set(func(key string) error { t.Errorf("%s is written", key); return nil })
		for range 25 {
			if r := n.declare(tool("a", "one"), server("s", "x")); *r != (protocol.DeclareResult{Epoch: 1}) {
				t.Fatalf("%+v", r)
			}
		}
		if n.gate.View().Snapshot != shown || len(n.epochs()) != 1 {
			t.Errorf("published %v", n.epochs())
		}
	})
}

// What arrives while a publication becomes durable is published together, once.
func TestPublicationsFold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &values{})
		release := n.values.blocked(epochKey)
		first := later[*protocol.DeclareResult](n, pass(tool("a", "one")))
		second := later[*protocol.DeclareResult](n, pass(tool("a", "two")))
		third := later[*protocol.DeclareResult](n, pass(tool("a", "three"), tool("b", "one")))
		release(nil)
		if a := <-first; a.err != nil || a.result.Epoch != 1 {
			t.Errorf("first: %+v", a)
		}
		for _, c := range []<-chan answer[*protocol.DeclareResult]{second, third} {
			if a := <-c; a.err != nil || a.result.Epoch != 2 {
				t.Errorf("%+v", a)
			}
		}
		if diff := cmp.Diff([]uint64{1, 2}, n.epochs()); diff != "" {
			t.Error(diff)
		}
		delta, known := n.gate.View().History.Between(1, 2)
		if !known || delta.String() != "added tool:b; updated tool:a" {
			t.Errorf("delta %s, %v", delta, known)
		}
	})
}

// V20, V21, V88: after a restart an unchanged world goes on under its number, without being published again; a changed one
// gets the next number, with the delta to what was published before.
func TestRestart(t *testing.T) {
	for name, tt := range map[string]struct {
		world []capability.Declaration
		epoch capability.Epoch
		delta string
	}{
		"unchanged": {[]capability.Declaration{tool("a", "one"), tool("b", "one")}, 2, "no change"},
		"changed":   {[]capability.Declaration{tool("a", "one"), tool("c", "one")}, 3, "added tool:c; removed tool:b"},
		"empty":     {nil, 3, "removed tool:a, tool:b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &values{}
				n := newNode(t, v)
				n.declare(tool("a", "one"))
				n.declare(tool("a", "one"), tool("b", "one"))
				digest := n.gate.View().Snapshot.Set.Digest()
				n.stop()

				n = newNode(t, v)
				if s := n.gate.View(); s.Snapshot.Epoch != 2 || s.Policy != nil {
					t.Fatalf("before the first pass: %+v", s)
				}
				r := n.declare(tt.world...)
				view := n.gate.View()
				if r.Epoch != tt.epoch || r.Changed != (tt.epoch == 3) || view.Snapshot.Epoch != tt.epoch || view.Policy != open {
					t.Fatalf("%+v, shown %d", r, view.Snapshot.Epoch)
				}
				if tt.epoch == 2 && (view.Snapshot.Set.Digest() != digest || n.epochs() != nil) {
					t.Errorf("the unchanged world was published as %v", n.epochs())
				}
				if delta, known := view.History.Between(2, tt.epoch); !known || delta.String() != tt.delta {
					t.Errorf("delta %q, %v", delta, known)
				}
				if _, known := view.History.Between(1, tt.epoch); !known {
					t.Error("what was published before the restart is forgotten")
				}
			})
		})
	}
}

// An empty world is a world too: with nothing to publish, turns can begin in epoch 0.
func TestEmptyWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &values{})
		if r := n.declare(); r.Epoch != 0 || r.Changed || n.gate.View().Policy != open {
			t.Errorf("%+v, %+v", r, n.gate.View())
		}
	})
}

// V80: a publication that cannot be made durable fails the pass, is no silent loss and blocks no later one.
func TestFailedSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &values{})
		n.declare(tool("a", "one"))
		n.values.failing(epochKey)
		if _, err := ask[*protocol.DeclareResult](n, pass(tool("a", "two"))); vakerr.CodeOf(err) != vakerr.LedgerUnavailable {
			t.Fatalf("%v", err)
		}
		failedAt := time.Now()
		time.Sleep(time.Minute)
		_, err := ask[*protocol.DeclareResult](n, pass(tool("a", "two")))
		if loop := n.report().Loop; err == nil || !loop.Failing || !loop.FailedSince.Equal(failedAt) || loop.LastError != "the disk is full" {
			t.Errorf("%v, loop %+v", err, loop)
		}
		if shown := n.gate.View().Snapshot; shown.Epoch != 1 {
			t.Errorf("epoch %d is shown", shown.Epoch)
		}
		n.values.failing()
		if r := n.declare(tool("a", "two")); r.Epoch != 2 || !r.Changed {
			t.Errorf("%+v", r)
		}
		if loop := n.report().Loop; loop.Failing || loop.LastError != "" || !loop.FailedSince.IsZero() {
			t.Errorf("healthy again: %+v", loop)
		}
	})
}

// V97: a policy that denies takes effect at once, without an epoch of its own.
func TestPolicyIsShownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &values{})
		n.declare(tool("a", "one"))
		strict := &policy.Current{Engine: engine(policy.PermissionRules{Deny: []string{"a"}})}
		release := n.values.blocked(epochKey)
		narrowed := pass(tool("a", "two")) // an epoch that takes its time does not hold the policy up
		narrowed.Policy = strict
		declared := later[*protocol.DeclareResult](n, narrowed)
		if v := n.gate.View(); v.Policy != strict || v.Snapshot.Epoch != 1 {
			t.Errorf("%+v", v)
		}
		release(nil)
		if a := <-declared; a.err != nil || a.result.Epoch != 2 {
			t.Errorf("%+v", a)
		}
		same := pass(tool("a", "two"))
		if r := must[*protocol.DeclareResult](n, same); r.Changed || n.gate.View().Policy != open {
			t.Errorf("policy alone: %+v, %v", r, n.gate.View().Policy)
		}
	})
}

// A compiled-in declaration wins over a file of the same id.
func TestBuiltinWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		builtin := tool("a", "compiled in")
		builtin.Origin = capability.Origin{Kind: capability.OriginBuiltin}
		n := newNode(t, &values{}, builtin)
		n.declare(tool("a", "from a file"), tool("b", "from a file"))
		set := n.gate.View().Snapshot.Set
		a, _ := set.Get(id("tool:a"))
		if set.Len() != 2 || a.Summary != "compiled in" {
			t.Errorf("%d capabilities, tool:a is %q", set.Len(), a.Summary)
		}
	})
}

// V20, V21, V22, V88: whatever happens, in whatever order, over restarts and failing disks: the numbers announced only
// rise, a number stands for one digest for ever, a publication differs from the one before, and what the gate shows is
// consistent and holds every revocation that was answered.
func TestEpochsByModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{
			"declare", "declare", "declare", "revoke", "restore", "restart", "fail", "heal", "crash", "observe",
		}), 1, 25).Draw(rt, "steps")
		worlds := rapid.SliceOfN(rapid.IntRange(0, 15), len(steps), len(steps)).Draw(rt, "worlds")
		synctest.Test(t, func(t *testing.T) {
			v := &values{}
			n := newNode(t, v)
			digests := map[capability.Epoch]string{}
			revoked := capability.Revocations{}
			unsure := map[capability.ID]bool{} // the operator was told that the act is not durable
			last, broken := capability.Epoch(0), false
			for i, step := range steps {
				w := worlds[i]
				subject := []string{"tool:a", "tool:b"}[w%2]
				switch step {
				case "declare":
					if r, err := ask[*protocol.DeclareResult](n, pass(worldOf(w)...)); (err != nil) && !broken {
						t.Fatalf("declare: %v", err)
					} else if err == nil && r.Epoch != n.gate.View().Snapshot.Epoch {
						t.Fatalf("declared %d, shown %d", r.Epoch, n.gate.View().Snapshot.Epoch)
					}
				case "revoke":
					_, err := ask[*registryv1.RevokeResult](n, &registryv1.Revoke{Id: subject, Reason: "r"})
					revoked[id(subject)], unsure[id(subject)] = "r", err != nil
				case "restore":
					_, err := ask[*registryv1.RestoreResult](n, &registryv1.Restore{Id: subject})
					delete(revoked, id(subject))
					unsure[id(subject)] = err != nil
				case "observe":
					s := server("s", "x")
					n.observe(&protocol.Observed{Server: "s", Definition: definition(s), Observation: catalog([]string{"t", "u"}[w%2])})
				case "restart":
					n.stop()
					n = newNode(t, v)
					for i := range unsure {
						if unsure[i] {
							delete(revoked, i)
						}
					}
				case "crash":
					n.crash()
				case "fail":
					v.failing(epochKey, revocationsKey)
					broken = true
				case "heal":
					v.failing()
					broken = false
				}
				synctest.Wait()
				last = n.check(last, digests, revoked, unsure)
			}
		})
	})
}

// worldOf is one of 16 worlds.
func worldOf(w int) []capability.Declaration {
	var all []capability.Declaration
	if w&1 != 0 {
		all = append(all, tool("a", "one"))
	}
	if w&2 != 0 {
		all = append(all, tool("b", []string{"one", "two"}[w&1]))
	}
	if w&12 != 0 {
		all = append(all, server("s", []string{"x", "y"}[w>>2&1]))
	}
	return all
}

func (n *node) check(last capability.Epoch, digests map[capability.Epoch]string, revoked capability.Revocations, unsure map[capability.ID]bool) capability.Epoch {
	n.t.Helper()
	view := n.gate.View()
	if err := view.Snapshot.Set.Consistent(); err != nil {
		n.t.Fatal(err)
	}
	if set := view.Snapshot.Set; set != nil {
		if known, ok := digests[view.Snapshot.Epoch]; ok && known != set.Digest() {
			n.t.Fatalf("epoch %d had digest %s and has %s", view.Snapshot.Epoch, known, set.Digest())
		}
		if known, ok := digests[view.Snapshot.Epoch-1]; ok && known == set.Digest() {
			n.t.Fatalf("epoch %d publishes what %d did", view.Snapshot.Epoch, view.Snapshot.Epoch-1)
		}
		digests[view.Snapshot.Epoch] = set.Digest()
	}
	if view.Snapshot.Epoch < last {
		n.t.Fatalf("epoch %d came after %d", view.Snapshot.Epoch, last)
	}
	if all := n.epochs(); !slices.IsSorted(all) || len(slices.Compact(all)) != len(n.epochs()) {
		n.t.Fatalf("announced %v", n.epochs())
	}
	for _, i := range []capability.ID{id("tool:a"), id("tool:b")} {
		_, want := revoked[i]
		if _, is := view.Revoked[i]; is != want && !unsure[i] {
			n.t.Fatalf("%s is revoked: %v, want %v", i, is, want)
		}
	}
	return view.Snapshot.Epoch
}

// crash makes the actor fail and waits until its supervisor has started it again.
func (n *node) crash() {
	n.t.Helper()
	n.mu.Lock()
	before := n.started
	n.mu.Unlock()
	n.health = func() []capability.Health { panic("by the test") }
	if _, err := ask[*registryv1.GetReportResult](n, &registryv1.GetReport{}); err == nil {
		n.t.Fatal("the registry did not fail")
	}
	n.health = nil
	for {
		synctest.Wait()
		n.mu.Lock()
		again := n.started > before
		n.mu.Unlock()
		if again {
			return
		}
		time.Sleep(time.Second)
	}
}

// A registry that failed and was started again shows what it showed, without a gap, also what never became durable.
func TestRestartBySupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &values{})
		n.declare(tool("a", "one"), tool("b", "one"))
		n.values.failing(revocationsKey)
		if _, err := ask[*registryv1.RevokeResult](n, &registryv1.Revoke{Id: "tool:a", Reason: "incident"}); err == nil {
			t.Fatal("a revocation was answered that is not durable")
		}
		before := *n.gate.View()
		loading := make(chan struct{})
		n.values.loads = func() error { <-loading; return nil }
		n.crash()
		if diff := cmp.Diff(before, *n.gate.View(), cmp.Comparer(func(a, b turn.View) bool {
			return a.Snapshot == b.Snapshot && a.Policy == b.Policy && a.Revoked[id("tool:a")] == b.Revoked[id("tool:a")]
		})); diff != "" {
			t.Errorf("while its memory is read: %s", diff)
		}
		close(loading)
		synctest.Wait()
		if v := n.gate.View(); v.Snapshot != before.Snapshot || v.Policy != open || v.Revoked[id("tool:a")] != "incident" {
			t.Errorf("after it: %+v", v)
		}
		n.values.failing()
		if r := n.declare(tool("a", "one"), tool("b", "one")); r.Epoch != 2 {
			t.Errorf("the epoch that shows the revocation: %+v", r)
		}
		if c, _ := n.gate.View().Snapshot.Set.Get(id("tool:a")); c.Usable() {
			t.Error("the revocation is lost")
		}
	})
}

// An epoch that was made durable but never shown, because the actor failed in between, is not published after the fact.
func TestFailureBetweenDurableAndShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &values{})
		n.declare(tool("a", "one"))
		n.values.set(func(key string) error {
			if key == epochKey {
				n.values.set(nil)
				_ = NewMemory("default", n.values).SaveEpoch(t.Context(), RememberedEpoch{Epoch: 2, Marks: capability.Marks{}})
				panic("by the test")
			}
			return nil
		})
		if _, err := ask[*protocol.DeclareResult](n, pass(tool("a", "two"))); vakerr.CodeOf(err) != vakerr.ActorStopped {
			t.Fatalf("%v", err)
		}
		time.Sleep(time.Minute)
		if starts := n.starts(); starts != 2 {
			t.Fatalf("the registry was started %d times", starts)
		}
		if v := n.gate.View(); v.Snapshot.Epoch != 1 || v.Snapshot.Set.Len() != 1 {
			t.Fatalf("shown: %+v", v.Snapshot)
		}
		if r := n.declare(tool("a", "three")); r.Epoch != 2 {
			t.Errorf("%+v", r)
		}
		if delta, known := n.gate.View().History.Between(1, 2); !known || delta.String() != "updated tool:a" {
			t.Errorf("delta %s, %v", delta, known)
		}
	})
}

// An id that no capability can have is refused: an operator would think that it is off.
func TestRevokeOfAServersTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &values{})
		n.declare(tool("a", "one"))
		_, err := ask[*registryv1.RevokeResult](n, &registryv1.Revoke{Id: "mcp:git/push", Reason: "incident"})
		if vakerr.CodeOf(err) != vakerr.InvalidRequest || !strings.Contains(vakerr.From(err).Remedy, "mcp(git/push)") {
			t.Errorf("%v, remedy %q", err, vakerr.From(err).Remedy)
		}
		if len(n.gate.View().Revoked) > 0 {
			t.Error("it is in force")
		}
	})
}
