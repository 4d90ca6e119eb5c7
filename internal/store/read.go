package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const (
	sessionColumns = "id, closed, epoch, head, hash, owner, created_at, last_at, attributes"
	entryColumns   = "seq, epoch, at, kind, coalesce(operation, ''), body, prev, hash"
	ofSession      = " FROM entry WHERE session = (SELECT n FROM session WHERE tenant = ? AND id = ?)"
)

type scanner interface{ Scan(dest ...any) error }

// scanSession reads sessionColumns; first are the destinations of columns before them.
func scanSession(row scanner, tenant string, first ...any) (ledger.SessionInfo, error) {
	info := ledger.SessionInfo{Tenant: tenant, State: ledger.StateOpen}
	var closed bool
	var hash, attributes []byte
	var created, last int64
	err := row.Scan(append(first, &info.ID, &closed, &info.Head.Epoch, &info.Head.Seq, &hash, &info.Owner, &created, &last,
		&attributes)...)
	if err != nil {
		return info, err
	}
	info.Head.Session = info.ID
	info.CreatedAt, info.LastAt = time.UnixMicro(created).UTC(), time.UnixMicro(last).UTC()
	if closed {
		info.State = ledger.StateClosed
	}
	if !copyHash(&info.Head.Hash, hash) || json.Unmarshal(attributes, &info.Attributes) != nil {
		return info, damagedRow(info.ID)
	}
	return info, nil
}

func scanEntry(row scanner, id ledger.SessionID) (ledger.Entry, error) {
	e := ledger.Entry{Session: id}
	var at int64
	var body, prev, hash []byte
	if err := row.Scan(&e.Seq, &e.Epoch, &at, &e.Kind, &e.Operation, &body, &prev, &hash); err != nil {
		return e, err
	}
	e.At, e.Body = time.UnixMicro(at).UTC(), body
	if !copyHash(&e.Prev, prev) || !copyHash(&e.Hash, hash) {
		return e, damagedRow(id)
	}
	return e, nil
}

func copyHash(to *ledger.Hash, from []byte) bool {
	return copy(to[:], from) == len(to) && len(from) == len(to)
}

func damagedRow(id ledger.SessionID) error {
	return vakerr.New(vakerr.LedgerCorrupt, "a stored row of session %s is damaged", id).
		WithRemedy("restore the data folder from a backup")
}

// Read implements ledger.Store.
func (s *SQLite) Read(ctx context.Context, tenant string, id ledger.SessionID, from uint64, limit int) ([]ledger.Entry, error) {
	limit = ledger.Limit(limit, ledger.MaxRead)
	return s.entries(ctx, tenant, id, limit, func(ledger.Entry) bool { return true },
		"SELECT "+entryColumns+ofSession+" AND seq >= ? ORDER BY seq LIMIT ?", tenant, id, clampSeq(from), limit)
}

// clampSeq keeps a sequence within SQLite's integers, which no ledger reaches the end of.
func clampSeq(seq uint64) int64 { return int64(min(seq, 1<<62)) }

// Search implements ledger.Store. It reads the session's entries from the newest on until it has found enough.
func (s *SQLite) Search(ctx context.Context, tenant string, id ledger.SessionID, q ledger.Query, limit int) ([]ledger.Entry, error) {
	return s.entries(ctx, tenant, id, ledger.Limit(limit, ledger.MaxFound), q.Matches,
		"SELECT "+entryColumns+ofSession+" ORDER BY seq DESC", tenant, id)
}

// FindOperation implements ledger.Store.
func (s *SQLite) FindOperation(ctx context.Context, tenant string, id ledger.SessionID, operation string) (ledger.Entry, bool, error) {
	found, err := s.entries(ctx, tenant, id, 1, func(ledger.Entry) bool { return true },
		"SELECT "+entryColumns+ofSession+" AND operation = ?", tenant, id, operation)
	if err != nil || len(found) == 0 {
		return ledger.Entry{}, false, err
	}
	return found[0], true, nil
}

// entries returns what a query yields and keep accepts: at most limit, and no more once MaxReadBytes are reached.
func (s *SQLite) entries(ctx context.Context, tenant string, id ledger.SessionID, limit int, keep func(ledger.Entry) bool,
	query string, args ...any,
) ([]ledger.Entry, error) {
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	rows, err := s.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.publicError(err)
	}
	defer rows.Close()
	var found []ledger.Entry
	for left := ledger.MaxReadBytes; left > 0 && len(found) < limit && rows.Next(); {
		e, err := scanEntry(rows, id)
		if err != nil {
			return nil, s.publicError(err)
		}
		if keep(e) {
			found, left = append(found, e), left-len(e.Body)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, s.publicError(err)
	}
	if len(found) > 0 {
		return found, nil
	}
	rows.Close() // its connection may be the only free one
	_, err = s.session(ctx, tenant, id)
	return nil, err
}

// Session implements ledger.Store.
func (s *SQLite) Session(ctx context.Context, tenant string, id ledger.SessionID) (ledger.SessionInfo, error) {
	leave, err := s.enter()
	if err != nil {
		return ledger.SessionInfo{}, err
	}
	defer leave()
	return s.session(ctx, tenant, id)
}

func (s *SQLite) session(ctx context.Context, tenant string, id ledger.SessionID) (ledger.SessionInfo, error) {
	row := s.reader.QueryRowContext(ctx, "SELECT "+sessionColumns+" FROM session WHERE tenant = ? AND id = ?", tenant, id)
	info, err := scanSession(row, tenant)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.SessionInfo{}, ledger.NotFound(id)
	}
	if err != nil {
		return ledger.SessionInfo{}, s.publicError(err)
	}
	return info, nil
}

// Sessions implements ledger.Store.
func (s *SQLite) Sessions(ctx context.Context, tenant string, page ledger.Page) ([]ledger.SessionInfo, error) {
	return collect(ctx, s, func(row scanner) (ledger.SessionInfo, error) { return scanSession(row, tenant) },
		"SELECT "+sessionColumns+" FROM session WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?",
		tenant, page.After, ledger.Limit(page.Limit, ledger.MaxPage))
}

// State implements ledger.Store.
func (s *SQLite) State(ctx context.Context, tenant, key string) ([]byte, bool, error) {
	values, err := collect(ctx, s, scanOne[[]byte],
		"SELECT value FROM state WHERE tenant = ? AND key = ?", tenant, key)
	if err != nil || len(values) == 0 {
		return nil, false, err
	}
	return values[0], true, nil
}

// StateKeys implements ledger.Store.
func (s *SQLite) StateKeys(ctx context.Context, tenant, prefix string) ([]string, error) {
	return collect(ctx, s, scanOne[string],
		"SELECT key FROM state WHERE tenant = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?",
		tenant, prefix, prefix+"\x7f", ledger.MaxStateKeys) // keys are visible ASCII, so none reaches 0x7f
}

func scanOne[T any](row scanner) (value T, err error) {
	err = row.Scan(&value)
	return value, err
}

// collect returns every row of a query, whose text bounds their number.
func collect[T any](ctx context.Context, s *SQLite, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	rows, err := s.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.publicError(err)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, s.publicError(err)
		}
		all = append(all, item)
	}
	return all, s.publicError(rows.Err())
}
