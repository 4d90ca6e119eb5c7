package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/ledger/ledgertest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// disk is a store that takes time, and remembers its groups.
type disk struct {
	ledgertest.Memory
	took time.Duration

	mu     sync.Mutex
	groups [][]ledger.Write
}

func newDisk(took time.Duration) *disk {
	d := &disk{took: took}
	d.BeforeCommit = func(writes []ledger.Write) error {
		d.mu.Lock()
		d.groups = append(d.groups, writes)
		d.mu.Unlock()
		time.Sleep(d.took) // within a bubble
		return nil
	}
	return d
}

func put(key string) ledger.Put { return ledger.Put{Tenant: "t", Key: key, Value: []byte("v")} }

// keys are the keys of each group's writes.
func (d *disk) keys() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var text strings.Builder
	for _, group := range d.groups {
		for _, w := range group {
			text.WriteString(w.(ledger.Put).Key)
		}
		text.WriteString(" ")
	}
	return strings.TrimSpace(text.String())
}

type answers struct {
	t     testing.TB
	start time.Time
	mu    sync.Mutex
	got   []string
}

// take is a done function that notes key, time and error.
func (a *answers) take(key string) func(ledger.Outcome) {
	return func(out ledger.Outcome) {
		a.mu.Lock()
		defer a.mu.Unlock()
		text := fmt.Sprintf("%s@%d", key, time.Since(a.start).Milliseconds())
		if out.Err != nil {
			text += "=" + string(vakerr.CodeOf(out.Err))
		}
		a.got = append(a.got, text)
	}
}

func (a *answers) want(want string) {
	a.t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if got := strings.Join(a.got, " "); got != want {
		a.t.Errorf("answers %s\n   want %s", got, want)
	}
}

// bubble runs a test with a committer on a disk whose commits take so long.
func bubble(t *testing.T, took time.Duration, config CommitterConfig, test func(t *testing.T, c *Committer, d *disk, a *answers)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(took)
		config.Store = d
		c := NewCommitter(t.Context(), config)
		defer c.Close()
		test(t, c, d, &answers{t: t, start: time.Now()})
	})
}

func TestSoonWaitsForItsDelayAlone(t *testing.T) {
	bubble(t, 0, CommitterConfig{}, func(_ *testing.T, c *Committer, d *disk, a *answers) {
		c.Submit(put("a"), Soon, a.take("a"))
		time.Sleep(20 * time.Millisecond)
		c.Submit(put("b"), Soon, a.take("b"))
		time.Sleep(29 * time.Millisecond)
		a.want("")
		time.Sleep(time.Millisecond)
		a.want("a@50 b@50")
		c.Submit(put("c"), Soon, a.take("c"))
		time.Sleep(50 * time.Millisecond)
		a.want("a@50 b@50 c@100")
		if got := d.keys(); got != "ab c" {
			t.Errorf("groups %q, want ab and c", got)
		}
	})
}

func TestNowTakesEverythingBeforeItAlong(t *testing.T) {
	bubble(t, time.Millisecond, CommitterConfig{}, func(_ *testing.T, c *Committer, d *disk, a *answers) {
		c.Submit(put("a"), Soon, a.take("a"))
		time.Sleep(10 * time.Millisecond)
		c.Submit(put("b"), Now, a.take("b"))
		synctest.Wait() // the commit runs
		c.Submit(put("c"), Soon, a.take("c"))
		time.Sleep(60 * time.Millisecond)
		a.want("a@11 b@11 c@61")
		if got := d.keys(); got != "ab c" {
			t.Errorf("groups %q: a goes with b", got)
		}
	})
}

func TestWhatComesDuringACommitIsOneGroup(t *testing.T) {
	bubble(t, 10*time.Millisecond, CommitterConfig{Batch: 3}, func(t *testing.T, c *Committer, d *disk, a *answers) {
		c.Submit(put("a"), Now, a.take("a"))
		synctest.Wait()
		for _, key := range []string{"b", "c", "d", "e"} {
			c.Submit(put(key), Now, a.take(key))
		}
		time.Sleep(time.Second)
		a.want("a@10 b@20 c@20 d@20 e@30")
		if got := d.keys(); got != "a bcd e" {
			t.Errorf("groups %q, want a, three that fill a batch, and the rest", got)
		}
	})
}

func TestAFullBatchDoesNotWait(t *testing.T) {
	large := ledger.Put{Tenant: "t", Key: "large", Value: make([]byte, 1000)}
	for name, config := range map[string]CommitterConfig{"by number": {Batch: 2}, "by size": {BatchBytes: 1500}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 0, config, func(_ *testing.T, c *Committer, _ *disk, a *answers) {
				c.Submit(large, Soon, a.take("a"))
				time.Sleep(time.Millisecond)
				a.want("")
				c.Submit(large, Soon, a.take("b"))
				time.Sleep(time.Millisecond)
				if name == "by number" {
					a.want("a@1 b@1")
				} else {
					a.want("a@1") // b no longer fills a batch
				}
			})
		})
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	for name, config := range map[string]CommitterConfig{"by number": {Queue: 2, Batch: 9}, "by size": {QueueBytes: 300, Batch: 9}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, time.Second, config, func(t *testing.T, c *Committer, _ *disk, a *answers) {
				c.Submit(put("a"), Now, a.take("a"))
				synctest.Wait() // a is on its way, the queue is empty
				for _, key := range []string{"b", "c", "d"} {
					c.Submit(put(key), Now, a.take(key))
				}
				a.want("d@0=queue_full")
				time.Sleep(2 * time.Second)
				c.Submit(put("e"), Now, a.take("e"))
				time.Sleep(2 * time.Second)
				a.want("d@0=queue_full a@1000 b@2000 c@2000 e@3000")
			})
		})
	}
	t.Run("but takes one write of any size", func(t *testing.T) {
		bubble(t, 0, CommitterConfig{QueueBytes: 1, BatchBytes: 1}, func(_ *testing.T, c *Committer, _ *disk, a *answers) {
			c.Submit(put("a"), Now, a.take("a"))
			a.want("a@0")
		})
	})
}

func TestBehindTellsThatWritesWaitTooLong(t *testing.T) {
	bubble(t, 70*time.Millisecond, CommitterConfig{}, func(t *testing.T, c *Committer, _ *disk, a *answers) {
		want := func(behind bool, when string) {
			t.Helper()
			synctest.Wait()
			if c.Behind() != behind {
				t.Errorf("%s: behind is %v", when, !behind)
			}
		}
		want(false, "nothing waits")
		c.Submit(put("a"), Now, a.take("a"))
		synctest.Wait() // a is on its way
		c.Submit(put("b"), Soon, a.take("b"))
		time.Sleep(50 * time.Millisecond)
		want(false, "a write may wait so long")
		time.Sleep(time.Millisecond)
		want(true, "the disk is still busy with the write before")
		time.Sleep(70 * time.Millisecond)
		want(false, "the write is on its way")
	})
}

func TestCloseCommitsWhatIsQueued(t *testing.T) {
	bubble(t, 5*time.Millisecond, CommitterConfig{}, func(t *testing.T, c *Committer, _ *disk, a *answers) {
		c.Submit(put("a"), Now, a.take("a"))
		synctest.Wait()
		c.Submit(put("b"), Soon, a.take("b"))
		c.Close()
		a.want("a@5 b@10")
		c.Submit(put("c"), Now, a.take("c"))
		a.want("a@5 b@10 c@10=shutting_down")
		c.Close()
	})
}

func TestAFailedTransactionIsToldToEveryWriteInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(0)
		fail := true
		d.BeforeCommit = func([]ledger.Write) error {
			if fail {
				return ledger.Unknown(errors.New("disk"))
			}
			return nil
		}
		c := NewCommitter(t.Context(), CommitterConfig{Store: d})
		defer c.Close()
		unknown := 0
		note := func(out ledger.Outcome) {
			if ledger.IsUnknown(out.Err) {
				unknown++
			}
		}
		c.Submit(put("a"), Soon, note)
		c.Submit(put("b"), Soon, note)
		if out := c.Commit(t.Context(), put("c")); !ledger.IsUnknown(out.Err) {
			t.Errorf("outcome %v, want unknown", out.Err)
		}
		fail = false
		if out := c.Commit(t.Context(), put("d")); out.Err != nil || unknown != 2 {
			t.Errorf("after the failure: %v; %d of 2 were told", out.Err, unknown)
		}
	})
}

func TestACallerThatLeavesDoesNotKnow(t *testing.T) {
	bubble(t, time.Second, CommitterConfig{}, func(t *testing.T, c *Committer, d *disk, _ *answers) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if out := c.Commit(ctx, put("a")); !ledger.IsUnknown(out.Err) || !errors.Is(out.Err, context.DeadlineExceeded) {
			t.Errorf("outcome %v, want unknown", out.Err)
		}
		c.Close()
		if _, ok, _ := d.State(t.Context(), "t", "a"); !ok {
			t.Error("the write that was waited for is gone")
		}
	})
}

// Whatever the mixture of urgencies, each session's appends reach the store in order, none is fenced, each is answered
// once, and none waits longer than its delay and the commits before it.
func TestOrderAndDelayHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 60).Draw(rt, "steps")
		took := time.Duration(rapid.IntRange(0, 4).Draw(rt, "took")) * time.Millisecond
		batch := rapid.IntRange(1, 20).Draw(rt, "batch")
		synctest.Test(t, func(t *testing.T) {
			d := newDisk(took)
			c := NewCommitter(t.Context(), CommitterConfig{Store: d, Batch: batch})
			heads := map[ledger.SessionID]ledger.Head{}
			answered := make([]int, len(steps))
			var late time.Duration
			for i, step := range steps {
				w := step.write(t, heads)
				submitted := time.Now()
				c.Submit(w, step.urgency, func(out ledger.Outcome) {
					answered[i]++
					if out.Err != nil {
						t.Errorf("step %d: %v", i, out.Err)
					}
					late = max(late, time.Since(submitted))
				})
				time.Sleep(step.pause)
			}
			c.Close()
			for i, n := range answered {
				if n != 1 {
					t.Errorf("step %d was answered %d times", i, n)
				}
			}
			// At worst every earlier write was committed alone.
			if bound := 50*time.Millisecond + time.Duration(len(steps)+1)*took; late > bound {
				t.Errorf("a write took %s, the bound is %s", late, bound)
			}
			for id := range heads {
				ledgertest.ReadAll(t, d, "t", id)
			}
		})
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}

type step struct {
	id      ledger.SessionID
	urgency Urgency
	pause   time.Duration
}

func drawStep(t *rapid.T) step {
	return step{
		id:      rapid.SampledFrom([]ledger.SessionID{"s1", "s2", "s3"}).Draw(t, "id"),
		urgency: rapid.SampledFrom([]Urgency{Now, Soon, Soon}).Draw(t, "urgency"),
		pause:   time.Duration(rapid.SampledFrom([]int{0, 0, 1, 7, 60}).Draw(t, "pause")) * time.Millisecond,
	}
}

// write opens the session at its first step and appends to it at every later one, on the head the last one will leave.
func (s step) write(t *testing.T, heads map[ledger.SessionID]ledger.Head) ledger.Write {
	on, opened := heads[s.id]
	if !opened {
		w := opening(s.id)
		_, head, err := w.Record()
		if err != nil {
			t.Fatal(err)
		}
		heads[s.id] = head
		return w
	}
	w := ledgertest.Record(t, "t", on, note("x"))
	heads[s.id] = w.Last()
	return w
}

func TestManySessionsOnSQLite(t *testing.T) {
	s := open(t, t.TempDir())
	c := NewCommitter(t.Context(), CommitterConfig{Store: s})
	defer c.Close()
	const sessions, appends = 16, 50
	var group sync.WaitGroup
	for i := range sessions {
		group.Go(func() {
			out := c.Commit(t.Context(), opening(ledger.SessionID(fmt.Sprint("s", i))))
			for range appends {
				if out.Err != nil {
					t.Error(out.Err)
					return
				}
				e, _, err := out.Head.Next(ledgertest.At, "", note("x"))
				if err != nil {
					t.Error(err)
					return
				}
				out = c.Commit(t.Context(), ledger.Append{Tenant: "t", On: out.Head, Entries: []ledger.Entry{e}})
			}
		})
	}
	group.Wait()
	for i := range sessions {
		if n := len(ledgertest.ReadAll(t, s, "t", ledger.SessionID(fmt.Sprint("s", i)))); n != appends+1 {
			t.Errorf("session %d has %d entries, want %d", i, n, appends+1)
		}
	}
}

// While the storage takes nothing that is known, with the time it began; one write that it takes ends it.
func TestFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		m := &ledgertest.Memory{BeforeCommit: func([]ledger.Write) error {
			if full.Load() {
				return vakerr.New(vakerr.LedgerUnavailable, "the disk is full")
			}
			return nil
		}}
		c := NewCommitter(t.Context(), CommitterConfig{Store: m})
		defer c.Close()
		put := func() error { return c.Commit(t.Context(), ledger.Put{Tenant: "t", Key: "k", Value: []byte("v")}).Err }
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if f, failing := c.Failing(); failing {
			t.Errorf("at first: %+v", f)
		}
		full.Store(true)
		began := time.Now()
		for range 3 {
			_ = put()
			time.Sleep(time.Minute)
		}
		if f, failing := c.Failing(); !failing || !f.Since.Equal(began) || f.Reason != "the disk is full" {
			t.Errorf("while it is full: %+v, %v", f, failing)
		}
		// What is refused for a reason of its own says that the storage works.
		full.Store(false)
		_ = c.Commit(t.Context(), ledger.Activate{Tenant: "t", ID: "nobody", At: time.Now()})
		if f, failing := c.Failing(); failing {
			t.Errorf("afterwards: %+v", f)
		}
	})
}
