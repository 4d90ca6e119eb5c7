package ledger

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// The first bytes of every hashed text. A change of the encoding takes new ones.
const (
	genesisDomain = "vak-actors ledger genesis 1"
	entryDomain   = "vak-actors ledger entry 1"
)

// Genesis is the hash before a session's first entry. It binds the chain to its tenant and session.
func Genesis(tenant string, id SessionID) Hash {
	text := appendField(nil, genesisDomain)
	text = appendField(text, tenant)
	return sha256.Sum256(appendField(text, id))
}

// Origin is the head of a session without entries; nobody may write under it, because epochs start at 1.
func Origin(tenant string, id SessionID) Head { return Head{Session: id, Hash: Genesis(tenant, id)} }

// Chain is the hash of e after prev: SHA-256 over domain, prev, session, sequence, epoch, time in microseconds since
// 1970, kind, operation and body, in this order. Numbers are 8 bytes big-endian; texts have their length before them.
// e.Prev and e.Hash are not looked at.
func Chain(prev Hash, e Entry) Hash {
	text := make([]byte, 0, 1<<10) // on the stack; a longer one moves
	text = appendField(text, entryDomain)
	text = append(text, prev[:]...)
	text = appendField(text, e.Session)
	text = binary.BigEndian.AppendUint64(text, e.Seq)
	text = binary.BigEndian.AppendUint64(text, e.Epoch)
	text = binary.BigEndian.AppendUint64(text, uint64(e.At.UnixMicro()))
	text = appendField(text, e.Kind)
	text = appendField(text, e.Operation)
	return sha256.Sum256(appendField(text, e.Body))
}

func appendField[T ~string | ~[]byte](text []byte, field T) []byte {
	text = binary.BigEndian.AppendUint64(text, uint64(len(field)))
	return append(text, field...)
}

// Verifier checks a session's entries one by one, in constant memory.
type Verifier struct{ head Head }

// NewVerifier starts before the first entry of a session.
func NewVerifier(tenant string, id SessionID) *Verifier { return &Verifier{Origin(tenant, id)} }

// ResumeVerifier starts after an entry that was verified before.
func ResumeVerifier(head Head) *Verifier { return &Verifier{head} }

// Next takes the next entry. On the first broken one it returns ledger_corrupt, naming session and sequence, and keeps
// the head before it.
func (v *Verifier) Next(e Entry) error {
	switch {
	case e.Session != v.head.Session:
		return corrupt(v.head.Session, v.head.Seq+1, "the entry belongs to another session")
	case e.Seq != v.head.Seq+1:
		return corrupt(v.head.Session, v.head.Seq+1, "the entry is missing")
	case e.Prev != v.head.Hash:
		return corrupt(e.Session, e.Seq, "it does not follow the entry before it")
	case e.Hash != Chain(e.Prev, e):
		return corrupt(e.Session, e.Seq, "its content is not what was written")
	case e.Epoch < v.head.Epoch || e.Epoch == 0:
		return corrupt(e.Session, e.Seq, "its epoch is older than that of the entry before it")
	}
	v.head = v.head.after(e)
	return nil
}

// End checks that the entries seen so far are all of them: stored is the head that the store keeps apart from the
// entries. A cut-off tail is ledger_corrupt.
func (v *Verifier) End(stored Head) error {
	if v.head.Seq != stored.Seq || v.head.Hash != stored.Hash {
		return corrupt(v.head.Session, v.head.Seq+1, "the ledger does not end where its session says")
	}
	return nil
}

// Head is the end of what was verified.
func (v *Verifier) Head() Head { return v.head }

// Verify checks the whole record of a session from its first entry.
func Verify(tenant string, id SessionID, entries []Entry) error {
	v := NewVerifier(tenant, id)
	for _, e := range entries {
		if err := v.Next(e); err != nil {
			return err
		}
	}
	return nil
}

func corrupt(id SessionID, seq uint64, what string) *vakerr.Error {
	return vakerr.New(vakerr.LedgerCorrupt, "session %s is broken at sequence %d: %s", id, seq, what).
		WithRemedy("restore the data folder from a backup; everything before sequence %d is intact", seq)
}
