package lifecycle

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	ledgerv1 "github.com/vak-actors/vak-actors/messages/vak/ledger/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// agent is one session of a world.
type agent struct {
	*world
	id string
}

// aTurn is one turn of an agent; the zero id is that of a call that names no turn.
type aTurn struct {
	*agent
	*sessionv1.BeginTurnResult
}

// answer is what came of a call: a text, or an error.
type answer struct {
	text     string
	failed   bool
	err      error // nil: the tool answered
	repaired string
}

// String tells all of it.
func (a answer) String() string { return fmt.Sprintf("%v %s %v", a.failed, a.text, a.err) }

type object map[string]any

func (w *world) open() *agent {
	w.Helper()
	return w.openWith(&sessionv1.OpenSession{})
}

func (w *world) openWith(m *sessionv1.OpenSession) *agent {
	w.Helper()
	return &agent{w, ask[*sessionv1.OpenSessionResult](w, m).GetSession().GetSessionId()}
}

func (w *world) openMany(n int) []*agent {
	w.Helper()
	all := make([]*agent, n)
	for i := range all {
		all[i] = w.open()
	}
	return all
}

func (a *agent) begin() *aTurn {
	a.Helper()
	return a.prompt("")
}

// prompt begins a turn with a user's text.
func (a *agent) prompt(text string) *aTurn {
	a.Helper()
	return &aTurn{a, ask[*sessionv1.BeginTurnResult](a.world, &sessionv1.BeginTurn{SessionId: a.id, Prompt: text})}
}

// loose makes calls that name no turn: each is a turn of its own, bound to the epoch current at its start.
func (a *agent) loose() *aTurn { return &aTurn{a, &sessionv1.BeginTurnResult{}} }

func (a *agent) session() *sessionv1.Session {
	a.Helper()
	return ask[*sessionv1.GetSessionResult](a.world, &sessionv1.GetSession{SessionId: a.id}).GetSession()
}

func (u *aTurn) end() {
	u.Helper()
	ask[*sessionv1.EndTurnResult](u.world, &sessionv1.EndTurn{SessionId: u.id, TurnId: u.GetTurnId()})
}

// call makes a call. It may be used from any goroutine.
func (u *aTurn) call(name string, arguments object) answer {
	return u.within(0, name, arguments)
}

// within makes a call whose caller waits so long; 0: as long as it takes.
func (u *aTurn) within(limit time.Duration, name string, arguments object) answer {
	text, err := json.Marshal(arguments)
	if err != nil {
		return answer{err: err}
	}
	r, err := try[*sessionv1.DispatchResult](u.world, &sessionv1.Dispatch{
		SessionId: u.id, TurnId: u.GetTurnId(), Name: name, ArgumentsJson: text, TimeoutMs: limit.Milliseconds(),
	})
	if err != nil {
		return answer{err: err}
	}
	if f := r.GetRefusal(); f != nil {
		return answer{err: vakerr.New(vakerr.Code(f.GetCode()), "%s", f.GetReason()).WithRemedy("%s", f.GetRemedy()).
			WithRetryAfter(time.Duration(f.GetRetryAfterMs()) * time.Millisecond)}
	}
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(r.GetResultJson(), &result); err != nil {
		return answer{err: err}
	}
	texts := make([]string, len(result.Content))
	for i, c := range result.Content {
		texts[i] = c.Text
	}
	return answer{text: strings.Join(texts, "\n"), failed: r.GetFailed(), repaired: r.GetRepaired()}
}

// mcp calls a tool of a server.
func (u *aTurn) mcp(server, tool string, arguments object) answer {
	if arguments == nil {
		arguments = object{}
	}
	return u.call("mcp", object{"action": "call", "server": server, "tool": tool, "arguments": arguments})
}

// want fails the test unless the call answered with a text that holds words.
func (u *aTurn) want(a answer, words ...string) {
	u.Helper()
	if a.err != nil || a.failed {
		u.Errorf("the call failed: %v %s", a.err, a.text)
		return
	}
	for _, word := range words {
		if !strings.Contains(a.text, word) {
			u.Errorf("the answer does not hold %q: %.500s", word, a.text)
		}
	}
}

// record reads the whole ledger of a session.
func (a *agent) record() []ledger.Body {
	a.Helper()
	var all []ledger.Body
	for from := uint64(1); ; {
		page := ask[*ledgerv1.ReadLedgerResult](a.world, &ledgerv1.ReadLedger{SessionId: a.id, FromSeq: from, Limit: 1000})
		for _, e := range page.GetEntries() {
			body, err := ledger.DecodeBody(ledger.Entry{Kind: ledger.Kind(e.GetKind()), Body: e.GetBodyJson()})
			a.must(err)
			all = append(all, body)
		}
		if from = page.GetNextSeq(); from == 0 {
			return all
		}
	}
}

// recorded are the bodies of one kind in a session's ledger.
func recorded[B ledger.Body](a *agent) []B {
	a.Helper()
	var all []B
	for _, body := range a.record() {
		if b, ok := body.(B); ok {
			all = append(all, b)
		}
	}
	return all
}

// verify checks the hash chains of all sessions.
func (w *world) verify() {
	w.Helper()
	if faults := ask[*ledgerv1.VerifyLedgerResult](w, &ledgerv1.VerifyLedger{}).GetFaults(); len(faults) > 0 {
		w.Errorf("the ledger is broken: %v", faults)
	}
}
