// Package ledgertest holds what tests of ledgers share: an in-memory Store and the suite that every Store has to pass.
//
// Memory is the reference model. It keeps whole slices and compares plainly, so that its answers can be read off the
// code; it is durable against nothing.
package ledgertest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Memory is a ledger.Store in memory. The zero value is empty and ready.
type Memory struct {
	mu       sync.Mutex
	closed   bool
	sessions map[sessionKey]*session
	state    map[stateKey][]byte

	// BeforeCommit, when set, runs at the start of every Commit, outside the lock. An error from it is the outcome of
	// every write, and none happens.
	BeforeCommit func(writes []ledger.Write) error
}

var _ ledger.Store = (*Memory)(nil)

type sessionKey struct {
	tenant string
	id     ledger.SessionID
}

type stateKey struct{ tenant, key string }

type session struct {
	info    ledger.SessionInfo
	entries []ledger.Entry
}

func (m *Memory) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return vakerr.New(vakerr.Canceled, "the caller gave up").WithCause(err)
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return vakerr.New(vakerr.LedgerUnavailable, "the store is closed")
	}
	return nil
}

// Commit implements ledger.Store.
func (m *Memory) Commit(ctx context.Context, writes []ledger.Write) []ledger.Outcome {
	outcomes := make([]ledger.Outcome, len(writes))
	err := error(nil)
	if m.BeforeCommit != nil {
		err = m.BeforeCommit(writes)
	}
	if err == nil {
		if err = m.lock(ctx); err == nil {
			defer m.mu.Unlock()
		}
	}
	for i, w := range writes {
		if err != nil {
			outcomes[i].Err = err
			continue
		}
		outcomes[i] = m.applyLocked(w)
	}
	return outcomes
}

func (m *Memory) applyLocked(w ledger.Write) ledger.Outcome {
	if err := w.Check(); err != nil {
		return ledger.Outcome{Err: err}
	}
	switch w := w.(type) {
	case ledger.Open:
		return m.openLocked(w)
	case ledger.Activate:
		return m.activateLocked(w)
	case ledger.Append:
		return m.appendLocked(w)
	case ledger.Put:
		m.putLocked(w)
	}
	return ledger.Outcome{}
}

func (m *Memory) openLocked(w ledger.Open) ledger.Outcome {
	key := sessionKey{w.Tenant, w.ID}
	if m.sessions[key] != nil {
		return ledger.Outcome{Err: ledger.Exists(w.ID)}
	}
	entry, head, err := w.Record()
	if err != nil {
		return ledger.Outcome{Err: err}
	}
	if m.sessions == nil {
		m.sessions = map[sessionKey]*session{}
	}
	m.sessions[key] = &session{
		ledger.SessionInfo{
			Tenant: w.Tenant, ID: w.ID, State: ledger.StateOpen, Head: head, Owner: w.Owner,
			CreatedAt: entry.At, LastAt: entry.At, Attributes: maps.Clone(w.Attributes),
		},
		[]ledger.Entry{entry},
	}
	return ledger.Outcome{Head: head}
}

func (m *Memory) activateLocked(w ledger.Activate) ledger.Outcome {
	s := m.sessions[sessionKey{w.Tenant, w.ID}]
	switch {
	case s == nil:
		return ledger.Outcome{Err: ledger.NotFound(w.ID)}
	case s.info.State == ledger.StateClosed:
		return ledger.Outcome{Err: ledger.SessionIsClosed(w.ID)}
	}
	entry, head, err := w.Record(s.info.Head)
	if err != nil {
		return ledger.Outcome{Err: err}
	}
	s.info.Owner = w.Owner
	return s.take(head, entry)
}

func (m *Memory) appendLocked(w ledger.Append) ledger.Outcome {
	s := m.sessions[sessionKey{w.Tenant, w.On.Session}]
	if s == nil {
		return ledger.Outcome{Err: ledger.NotFound(w.On.Session)}
	}
	if err := w.Refusal(s.info); err != nil {
		return ledger.Outcome{Err: err}
	}
	seen := map[string]bool{}
	for _, e := range slices.Concat(s.entries, w.Entries) {
		if e.Operation != "" && seen[e.Operation] {
			return ledger.Outcome{Err: ledger.OperationTaken(w.On.Session, e.Operation)}
		}
		seen[e.Operation] = true
	}
	if w.Closes() {
		s.info.State = ledger.StateClosed
	}
	return s.take(w.Last(), w.Entries...)
}

func (s *session) take(head ledger.Head, entries ...ledger.Entry) ledger.Outcome {
	s.entries = append(s.entries, entries...)
	s.info.Head, s.info.LastAt = head, entries[len(entries)-1].At
	return ledger.Outcome{Head: head}
}

func (m *Memory) putLocked(w ledger.Put) {
	if len(w.Value) == 0 {
		delete(m.state, stateKey{w.Tenant, w.Key})
		return
	}
	if m.state == nil {
		m.state = map[stateKey][]byte{}
	}
	m.state[stateKey{w.Tenant, w.Key}] = slices.Clone(w.Value)
}

// read runs f on the session under the lock.
func (m *Memory) read(ctx context.Context, tenant string, id ledger.SessionID, f func(*session)) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	s := m.sessions[sessionKey{tenant, id}]
	if s == nil {
		return ledger.NotFound(id)
	}
	f(s)
	return nil
}

// Read implements ledger.Store.
func (m *Memory) Read(ctx context.Context, tenant string, id ledger.SessionID, from uint64, limit int) (out []ledger.Entry, err error) {
	left := ledger.MaxReadBytes
	err = m.read(ctx, tenant, id, func(s *session) {
		for _, e := range s.entries {
			if e.Seq >= from && len(out) < ledger.Limit(limit, ledger.MaxRead) && left > 0 {
				out, left = append(out, e), left-len(e.Body)
			}
		}
	})
	return out, err
}

// Search implements ledger.Store.
func (m *Memory) Search(ctx context.Context, tenant string, id ledger.SessionID, q ledger.Query, limit int) (out []ledger.Entry, err error) {
	left := ledger.MaxReadBytes
	err = m.read(ctx, tenant, id, func(s *session) {
		for _, e := range slices.Backward(s.entries) {
			if q.Matches(e) && len(out) < ledger.Limit(limit, ledger.MaxFound) && left > 0 {
				out, left = append(out, e), left-len(e.Body)
			}
		}
	})
	return out, err
}

// FindOperation implements ledger.Store.
func (m *Memory) FindOperation(ctx context.Context, tenant string, id ledger.SessionID, operation string) (found ledger.Entry, ok bool, err error) {
	err = m.read(ctx, tenant, id, func(s *session) {
		for _, e := range s.entries {
			if operation != "" && e.Operation == operation {
				found, ok = e, true
			}
		}
	})
	return found, ok, err
}

// Session implements ledger.Store.
func (m *Memory) Session(ctx context.Context, tenant string, id ledger.SessionID) (info ledger.SessionInfo, err error) {
	err = m.read(ctx, tenant, id, func(s *session) { info = s.info })
	return info, err
}

// Sessions implements ledger.Store.
func (m *Memory) Sessions(ctx context.Context, tenant string, page ledger.Page) ([]ledger.SessionInfo, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var out []ledger.SessionInfo
	for key, s := range m.sessions {
		if key.tenant == tenant && key.id > page.After {
			out = append(out, s.info)
		}
	}
	slices.SortFunc(out, func(a, b ledger.SessionInfo) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out[:min(len(out), ledger.Limit(page.Limit, ledger.MaxPage))], nil
}

// State implements ledger.Store.
func (m *Memory) State(ctx context.Context, tenant, key string) ([]byte, bool, error) {
	if err := m.lock(ctx); err != nil {
		return nil, false, err
	}
	defer m.mu.Unlock()
	value, ok := m.state[stateKey{tenant, key}]
	return slices.Clone(value), ok, nil
}

// StateKeys implements ledger.Store.
func (m *Memory) StateKeys(ctx context.Context, tenant, prefix string) ([]string, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var out []string
	for k := range m.state {
		if k.tenant == tenant && strings.HasPrefix(k.key, prefix) {
			out = append(out, k.key)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), ledger.MaxStateKeys)], nil
}

// Close implements ledger.Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
