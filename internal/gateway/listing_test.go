package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
)

const listText = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// listening runs f in a bubble, with a session that has listed its tools and can be told of changes.
func listening(t *testing.T, f func(w *world, s *session, told chan string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s, told := attachTest(t, w, everything)
		s.listen(+1)
		ask(t, s, listText)
		f(w, s, told)
		s.close(errDeleted)
	})
}

// settled waits until nothing is left to happen and returns how often the client was told meanwhile.
func settled(told chan string) int {
	time.Sleep(time.Minute)
	synctest.Wait()
	n := len(told)
	for range n {
		<-told
	}
	return n
}

// Between the calls of a client, which are its turns, the change of its list is told, once.
func TestListChangedIsTold(t *testing.T) {
	listening(t, func(w *world, s *session, told chan string) {
		w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
		synctest.Wait()
		if got := <-told; got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
			t.Errorf("told %s", got)
		}
		if n := settled(told); n != 0 {
			t.Errorf("told %d times more", n)
		}
		if got := ask(t, s, listText); !strings.Contains(got, `"new"`) {
			t.Errorf("the list after it: %s", got)
		}
		if n := settled(told); n != 0 {
			t.Errorf("told %d times after the client listed", n)
		}
	})
}

// A publication that leaves this client's list as it is, is no news for it.
func TestEqualListsAreNoNews(t *testing.T) {
	listening(t, func(w *world, _ *session, told chan string) {
		w.publish(func(map[string]*tool) {})
		w.announce()
		if n := settled(told); n != 0 {
			t.Errorf("told %d times of nothing", n)
		}
		// A tool that only other surfaces list.
		search, heard := attachTest(t, w, endpoint{Tenant: "default", Surface: SurfaceSearch})
		search.listen(+1)
		ask(t, search, listText)
		w.publish(func(tools map[string]*tool) { tools["git__log"] = named("git__log") })
		if n := settled(heard); n != 0 {
			t.Errorf("a client on the search surface was told %d times of a server's tool", n)
		}
		if n := settled(told); n != 1 {
			t.Errorf("a client on the full surface was told %d times", n)
		}
		search.close(errDeleted)
	})
}

func TestPublicationsAreCoalesced(t *testing.T) {
	listening(t, func(w *world, _ *session, told chan string) {
		before := len(commands[*sessionv1.ListTools](w))
		for i := range 1000 {
			w.publish(func(tools map[string]*tool) { tools["new"] = named(strings.Repeat("n", i+1)) })
		}
		if n := settled(told); n < 1 || n > 3 {
			t.Errorf("1000 changes in an instant were told %d times", n)
		}
		if n := len(commands[*sessionv1.ListTools](w)) - before; n > 5 {
			t.Errorf("1000 changes in an instant cost %d lists", n)
		}
	})
}

// However often the set moves, a client is told once in a while.
func TestStormIsCalmed(t *testing.T) {
	listening(t, func(w *world, _ *session, told chan string) {
		const storm = 5 * time.Second
		for i := range int(storm / (10 * time.Millisecond)) {
			w.publish(func(tools map[string]*tool) { tools["new"] = named(strings.Repeat("n", i+1)) })
			time.Sleep(10 * time.Millisecond)
		}
		if n, most := settled(told), int(storm/quiet)+2; n < 1 || n > most {
			t.Errorf("500 changes in %v were told %d times, want at most %d", storm, n, most)
		}
	})
}

// A change there and back, between two looks of the client, is told where the client may have seen the middle.
func TestChangeThereAndBack(t *testing.T) {
	listening(t, func(w *world, _ *session, told chan string) {
		w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
		if n := settled(told); n != 1 {
			t.Fatalf("told %d times of the addition", n)
		}
		w.publish(func(tools map[string]*tool) { delete(tools, "new") })
		if n := settled(told); n != 1 {
			t.Errorf("told %d times of the removal", n)
		}
	})
}

func TestNothingIsToldInABurst(t *testing.T) {
	listening(t, func(w *world, s *session, told chan string) {
		one, two := newGate(), newGate()
		w.publish(func(tools map[string]*tool) { tools["one"], tools["two"] = one.tool("one"), two.tool("two") })
		settled(told)
		answers := make(chan string, 2)
		go func() { answers <- ask(t, s, callText(1, "one", "{}")) }()
		<-one.entered
		w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
		go func() { answers <- ask(t, s, callText(2, "two", "{}")) }() // joins the burst
		<-two.entered
		one.release <- struct{}{}
		<-answers
		if n := settled(told); n != 0 {
			t.Fatalf("told %d times while a call of the burst is in flight", n)
		}
		// A client that never lists again calls what is new, and is refused what is gone.
		if got := ask(t, s, callText(3, "new", "{}")); !strings.Contains(got, `"text":"new"`) {
			t.Errorf("a new tool: %s", got)
		}
		w.publish(func(tools map[string]*tool) { delete(tools, "echo") })
		if got := ask(t, s, callText(4, "echo", "{}")); !strings.Contains(got, "unknown_tool") {
			t.Errorf("a tool that is gone: %s", got)
		}
		two.release <- struct{}{}
		<-answers
		if n := settled(told); n != 1 {
			t.Errorf("told %d times after the burst, want once", n)
		}
	})
}

// A call that begins while the list is being read puts the news off.
func TestCallBeginsDuringLook(t *testing.T) {
	listening(t, func(w *world, s *session, told chan string) {
		g := newGate()
		w.tools["wait"] = g.tool("wait")
		reading, read := make(chan struct{}), make(chan struct{})
		w.refuse = func(m proto.Message) error {
			if _, list := m.(*sessionv1.ListTools); list {
				reading <- struct{}{}
				<-read
			}
			return nil
		}
		w.announce()
		<-reading
		answer := make(chan string, 1)
		go func() { answer <- ask(t, s, callText(1, "wait", "{}")) }()
		<-g.entered
		w.mu.Lock()
		w.refuse = nil
		w.mu.Unlock()
		close(read)
		if n := settled(told); n != 0 {
			t.Errorf("told %d times in the middle of a call", n)
		}
		close(g.release)
		<-answer
		if n := settled(told); n != 1 {
			t.Errorf("told %d times after it", n)
		}
	})
}

// A list that was read before a publication, and arrives after it, leaves the client with old news: it is told.
func TestListOvertakenByPublication(t *testing.T) {
	listening(t, func(w *world, s *session, told chan string) {
		reading, read := make(chan struct{}), make(chan struct{})
		held := &heldDoor{Door: w, reading: reading, read: read}
		s.front.door = held
		answer := make(chan string, 1)
		go func() { answer <- ask(t, s, listText) }()
		<-reading
		w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
		if n := settled(told); n != 1 {
			t.Errorf("told %d times of the publication", n)
		}
		close(read)
		if got := <-answer; strings.Contains(got, `"new"`) {
			t.Fatalf("the list was meant to be an old one: %s", got)
		}
		if n := settled(told); n != 1 {
			t.Errorf("told %d times after an old list arrived", n)
		}
	})
}

// heldDoor is a door that keeps the answer to the first list back.
type heldDoor struct {
	protocol.Door
	reading, read chan struct{}
	done          bool
}

func (h *heldDoor) Ask(ctx context.Context, command proto.Message) (proto.Message, error) {
	answer, err := h.Door.Ask(ctx, command)
	if _, list := command.(*sessionv1.ListTools); list && !h.done {
		h.done = true
		close(h.reading)
		<-h.read
	}
	return answer, err
}

func TestWhoNeverListedIsToldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s, told := attachTest(t, w, everything)
		s.listen(+1)
		w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
		if n := settled(told); n != 0 || len(w.asked) != 0 {
			t.Errorf("told %d times, and the runtime was asked %d times", n, len(w.asked))
		}
		s.close(errDeleted)
	})
}

// Who has no stream open is told when it opens one.
func TestToldWhenTheStreamOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s, told := attachTest(t, w, everything)
		ask(t, s, listText)
		w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
		if n := settled(told); n != 0 {
			t.Fatalf("told %d times without a stream", n)
		}
		s.listen(+1)
		if n := settled(told); n != 1 {
			t.Errorf("told %d times", n)
		}
		s.close(errDeleted)
	})
}

func TestListThatCannotBeReadIsTriedAgain(t *testing.T) {
	listening(t, func(w *world, _ *session, told chan string) {
		failures := 2
		w.refuse = func(m proto.Message) error {
			if _, list := m.(*sessionv1.ListTools); list && failures > 0 {
				failures--
				return errors.New("away")
			}
			return nil
		}
		w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
		if n := settled(told); n != 1 {
			t.Errorf("told %d times, want once, at the third look", n)
		}
		// Attempts end; the next publication brings the next.
		failures = 1000
		w.publish(func(tools map[string]*tool) { delete(tools, "new") })
		if n := settled(told); n != 0 || failures != 1000-lookAttempts {
			t.Errorf("told %d times, %d looks left", n, failures)
		}
		failures = 0
		w.announce()
		if n := settled(told); n != 1 {
			t.Errorf("told %d times by the next publication", n)
		}
	})
}
