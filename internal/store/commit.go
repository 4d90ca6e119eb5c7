package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Commit implements ledger.Store.
func (s *SQLite) Commit(ctx context.Context, writes []ledger.Write) []ledger.Outcome {
	outcomes := make([]ledger.Outcome, len(writes))
	leave, err := s.enter()
	if err != nil {
		return failAll(outcomes, err)
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return failAll(outcomes, s.publicError(err))
	}
	// Half of all unknown outcomes would be made here, if a caller could interrupt a commit.
	ctx = context.WithoutCancel(ctx)
	err = s.attempt(ctx, writes, outcomes)
	switch {
	case err == nil:
		return outcomes
	case len(writes) > 1 && vakerr.CodeOf(err) == vakerr.LedgerCorrupt && !ledger.IsUnknown(err):
		// A damaged page of one session must not cost the others their entries.
		for i := range writes {
			if err := s.attempt(ctx, writes[i:i+1], outcomes[i:i+1]); err != nil {
				outcomes[i] = ledger.Outcome{Err: err}
			}
		}
		return outcomes
	}
	return failAll(outcomes, err)
}

func failAll(outcomes []ledger.Outcome, err error) []ledger.Outcome {
	for i := range outcomes {
		outcomes[i] = ledger.Outcome{Err: err}
	}
	return outcomes
}

// attempt commits writes in one transaction. After an error nothing of it happened, unless the error IsUnknown.
func (s *SQLite) attempt(ctx context.Context, writes []ledger.Write, outcomes []ledger.Outcome) error {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return s.publicError(err)
	}
	b := newBatch(ctx, tx, &s.sql)
	if err := b.applyAll(writes, outcomes); err != nil {
		_ = tx.Rollback() // SQLite may have rolled back already; either way nothing is kept
		return s.publicError(err)
	}
	if err := tx.Commit(); err != nil {
		return s.unknown(err)
	}
	return nil
}

// statements are prepared once on the writing connection.
type statements struct {
	session, open, activate, advance, follow, insert, operation, put, remove *sql.Stmt
}

func (q *statements) prepare(ctx context.Context, db *sql.DB) error {
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&q.session, "SELECT n, " + sessionColumns + " FROM session WHERE tenant = ? AND id = ?"},
		{&q.open, `INSERT INTO session (tenant, id, epoch, head, hash, owner, created_at, last_at, attributes)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`},
		{&q.activate, "UPDATE session SET epoch = ?, head = ?, hash = ?, owner = ?, last_at = ? WHERE n = ?"},
		// The fence: epoch, head and hash are the writer's, or nothing happens.
		{&q.advance, `UPDATE session SET head = ?, hash = ?, last_at = ?, closed = ?
			WHERE tenant = ? AND id = ? AND epoch = ? AND head = ? AND hash = ? AND closed = 0 RETURNING n`},
		{&q.follow, "UPDATE session SET head = ?, hash = ?, last_at = ? WHERE n = ?"},
		{&q.insert, `INSERT INTO entry (session, seq, epoch, at, kind, operation, body, prev, hash)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`},
		{&q.operation, `SELECT 1 FROM entry WHERE operation = ?
			AND session = (SELECT n FROM session WHERE tenant = ? AND id = ?)`},
		{&q.put, `INSERT INTO state (tenant, key, value) VALUES (?, ?, ?)
			ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value`},
		{&q.remove, "DELETE FROM state WHERE tenant = ? AND key = ?"},
	} {
		var err error
		if *p.stmt, err = db.PrepareContext(ctx, p.text); err != nil {
			return err
		}
	}
	return nil
}

// batch is one running transaction. An error of its methods is one of the database and ends the transaction; what a
// single write did wrong is in its outcome.
type batch struct {
	ctx     context.Context //nolint:containedctx // of the transaction, which batch does not outlive
	tx      *sql.Tx
	sql     *statements
	advance *sql.Stmt // these two of tx, as most writes use them
	insert  *sql.Stmt

	advanced map[sessionKey]*advanced
}

type sessionKey struct {
	tenant string
	id     ledger.SessionID
}

// advanced is a session that this transaction has appended to. Nobody else can write meanwhile, so an append on its head
// needs no fence, and one update of the session's row serves all of them.
type advanced struct {
	n     int64
	head  ledger.Head
	at    int64 // of the last entry
	ahead bool  // of the session's row
}

func newBatch(ctx context.Context, tx *sql.Tx, q *statements) *batch {
	return &batch{
		ctx: ctx, tx: tx, sql: q, advance: tx.StmtContext(ctx, q.advance), insert: tx.StmtContext(ctx, q.insert),
		advanced: make(map[sessionKey]*advanced),
	}
}

// applyAll applies what is fit to be written, and leaves every session's row at its head.
func (b *batch) applyAll(writes []ledger.Write, outcomes []ledger.Outcome) (err error) {
	for i, w := range writes {
		if outcomes[i].Err = w.Check(); outcomes[i].Err != nil {
			continue
		}
		if outcomes[i], err = b.apply(w); err != nil {
			return err
		}
	}
	for key := range b.advanced {
		if err := b.catchUp(key); err != nil {
			return err
		}
	}
	return nil
}

// catchUp brings the row of a session to its head, for whoever reads it. After that only a fence can tell who may write.
func (b *batch) catchUp(key sessionKey) error {
	a := b.advanced[key]
	delete(b.advanced, key)
	if a == nil || !a.ahead {
		return nil
	}
	_, err := b.tx.StmtContext(b.ctx, b.sql.follow).ExecContext(b.ctx, int64(a.head.Seq), a.head.Hash[:], a.at, a.n)
	return err
}

// follow appends to a session that this transaction has appended to; false when w needs the fence.
func (b *batch) follow(w ledger.Append) (done bool, err error) {
	a := b.advanced[sessionKey{w.Tenant, w.On.Session}]
	if a == nil || a.head != w.On || w.Closes() || slices.ContainsFunc(w.Entries, func(e ledger.Entry) bool { return e.Operation != "" }) {
		return false, nil
	}
	a.head, a.at, a.ahead = w.Last(), w.Entries[len(w.Entries)-1].At.UnixMicro(), true
	return true, b.insertAll(a.n, w.Entries...)
}

func (b *batch) apply(w ledger.Write) (ledger.Outcome, error) {
	switch w := w.(type) {
	case ledger.Open:
		return b.open(w)
	case ledger.Activate:
		return b.activate(w)
	case ledger.Append:
		return b.append(w)
	case ledger.Put:
		return ledger.Outcome{}, b.put(w)
	}
	return ledger.Outcome{Err: vakerr.New(vakerr.Internal, "a write of unknown type")}, nil
}

func (b *batch) open(w ledger.Open) (ledger.Outcome, error) {
	_, _, found, err := b.session(w.Tenant, w.ID)
	if err != nil {
		return ledger.Outcome{}, err
	}
	if found {
		return ledger.Outcome{Err: ledger.Exists(w.ID)}, nil
	}
	entry, head, err := w.Record()
	if err != nil {
		return ledger.Outcome{Err: err}, nil
	}
	attributes, err := json.Marshal(w.Attributes)
	if err != nil {
		return ledger.Outcome{}, err
	}
	at := entry.At.UnixMicro()
	result, err := b.tx.StmtContext(b.ctx, b.sql.open).ExecContext(b.ctx, w.Tenant, string(w.ID), int64(head.Epoch), int64(head.Seq),
		head.Hash[:], w.Owner, at, at, string(attributes))
	if err != nil {
		return ledger.Outcome{}, err
	}
	n, err := result.LastInsertId()
	if err != nil {
		return ledger.Outcome{}, err
	}
	return ledger.Outcome{Head: head}, b.insertAll(n, entry)
}

func (b *batch) activate(w ledger.Activate) (ledger.Outcome, error) {
	if err := b.catchUp(sessionKey{w.Tenant, w.ID}); err != nil {
		return ledger.Outcome{}, err
	}
	n, info, found, err := b.session(w.Tenant, w.ID)
	switch {
	case err != nil:
		return ledger.Outcome{}, err
	case !found:
		return ledger.Outcome{Err: ledger.NotFound(w.ID)}, nil
	case info.State == ledger.StateClosed:
		return ledger.Outcome{Err: ledger.SessionIsClosed(w.ID)}, nil
	}
	entry, head, err := w.Record(info.Head)
	if err != nil {
		return ledger.Outcome{Err: err}, nil
	}
	_, err = b.tx.StmtContext(b.ctx, b.sql.activate).ExecContext(b.ctx, int64(head.Epoch), int64(head.Seq), head.Hash[:], w.Owner,
		entry.At.UnixMicro(), n)
	if err != nil {
		return ledger.Outcome{}, err
	}
	return ledger.Outcome{Head: head}, b.insertAll(n, entry)
}

func (b *batch) append(w ledger.Append) (ledger.Outcome, error) {
	if done, err := b.follow(w); done || err != nil {
		return ledger.Outcome{Head: w.Last()}, err
	}
	key := sessionKey{w.Tenant, w.On.Session}
	if err := b.catchUp(key); err != nil {
		return ledger.Outcome{}, err
	}
	taken, err := b.takenOperation(w)
	if err != nil {
		return ledger.Outcome{}, err
	}
	if taken != "" {
		return b.refuse(w, taken)
	}
	last, at := w.Last(), w.Entries[len(w.Entries)-1].At.UnixMicro()
	var n int64
	err = b.advance.QueryRowContext(b.ctx, int64(last.Seq), last.Hash[:], at, w.Closes(),
		w.Tenant, string(w.On.Session), int64(w.On.Epoch), int64(w.On.Seq), w.On.Hash[:]).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return b.refuse(w, "")
	}
	if err != nil {
		return ledger.Outcome{}, err
	}
	if !w.Closes() {
		b.advanced[key] = &advanced{n: n, head: last, at: at}
	}
	return ledger.Outcome{Head: last}, b.insertAll(n, w.Entries...)
}

// takenOperation returns the first operation of w that the session has already; empty when there is none.
func (b *batch) takenOperation(w ledger.Append) (string, error) {
	for _, e := range w.Entries {
		if e.Operation == "" {
			continue
		}
		var one int
		err := b.tx.StmtContext(b.ctx, b.sql.operation).QueryRowContext(b.ctx, e.Operation, w.Tenant, string(w.On.Session)).Scan(&one)
		if err == nil {
			return e.Operation, nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return "", err
		}
	}
	return "", nil
}

// refuse says why w was not written.
func (b *batch) refuse(w ledger.Append, taken string) (ledger.Outcome, error) {
	_, info, found, err := b.session(w.Tenant, w.On.Session)
	if err != nil {
		return ledger.Outcome{}, err
	}
	if !found {
		return ledger.Outcome{Err: ledger.NotFound(w.On.Session)}, nil
	}
	if err = w.Refusal(info); err == nil {
		err = ledger.OperationTaken(w.On.Session, taken)
	}
	return ledger.Outcome{Err: err}, nil
}

func (b *batch) session(tenant string, id ledger.SessionID) (n int64, info ledger.SessionInfo, found bool, err error) {
	info, err = scanSession(b.tx.StmtContext(b.ctx, b.sql.session).QueryRowContext(b.ctx, tenant, string(id)), tenant, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, info, false, nil
	}
	return n, info, err == nil, err
}

func (b *batch) insertAll(n int64, entries ...ledger.Entry) error {
	for _, e := range entries {
		operation := sql.NullString{String: e.Operation, Valid: e.Operation != ""}
		_, err := b.insert.ExecContext(b.ctx, n, int64(e.Seq), int64(e.Epoch), e.At.UnixMicro(), string(e.Kind), operation,
			string(e.Body), e.Prev[:], e.Hash[:])
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) put(w ledger.Put) (err error) {
	if len(w.Value) == 0 {
		_, err = b.tx.StmtContext(b.ctx, b.sql.remove).ExecContext(b.ctx, w.Tenant, w.Key)
	} else {
		_, err = b.tx.StmtContext(b.ctx, b.sql.put).ExecContext(b.ctx, w.Tenant, w.Key, w.Value)
	}
	return err
}
