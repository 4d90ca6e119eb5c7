package ledger

import (
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of one write.
const (
	MaxEntries    = 256     // entries of one Append
	MaxStateValue = 4 << 20 // bytes of one Put
	MaxStateKey   = 128     // bytes
)

// Write is one thing to commit: Open, Activate, Append or Put. A write is accepted or refused whole.
type Write interface {
	// Check reports what makes the write unfit for any store; stores call it before anything else.
	Check() error
	// Size is about how many bytes the write holds in memory.
	Size() int
}

var _, _, _, _ Write = Open{}, Activate{}, Append{}, Put{}

// Open makes a session at epoch 1, with a session_opened entry. The outcome is session_exists when there is one.
type Open struct {
	Tenant     string
	ID         SessionID
	Owner      string // who writes: node and incarnation
	At         time.Time
	Attributes map[string]string
}

// Activate takes the next epoch of a session, with a session_activated entry: whoever held the one before can never
// write again. The outcome is session_not_found or session_closed when that is impossible.
type Activate struct {
	Tenant string
	ID     SessionID
	Owner  string
	At     time.Time
}

// Append adds entries that follow each other and On. The outcome is ledger_fenced when On is not the end of the ledger
// or its epoch is not the current one, session_closed or session_not_found. An entry of kind session_closed, the last
// one, closes the session.
type Append struct {
	Tenant  string
	On      Head // the head the writer expects
	Entries []Entry
}

// Put keeps a small value of a tenant under a key; an empty value removes the key.
type Put struct {
	Tenant string
	Key    string // alphabet of session ids
	Value  []byte
}

// Outcome is what became of one write. Head is the session's new head when Err is nil; it is zero for a Put.
type Outcome struct {
	Head Head
	Err  error
}

// Size is about how many bytes w holds.
func (w Open) Size() int {
	n := 256
	for k, v := range w.Attributes {
		n += len(k) + len(v)
	}
	return n
}

// Size is about how many bytes w holds.
func (w Activate) Size() int { return 256 }

// Size is about how many bytes w holds.
func (w Put) Size() int { return 128 + len(w.Value) }

// Size is about how many bytes w holds.
func (w Append) Size() int {
	n := 128
	for _, e := range w.Entries {
		n += 256 + len(e.Body)
	}
	return n
}

// Check reports a bad name or attribute.
func (w Open) Check() error {
	if err := checkAttributes(w.Attributes); err != nil {
		return err
	}
	return Activate{w.Tenant, w.ID, w.Owner, w.At}.Check()
}

// Check reports a bad name.
func (w Activate) Check() error {
	if err := ValidateTenant(w.Tenant); err != nil {
		return err
	}
	if err := ValidateSessionID(w.ID); err != nil {
		return err
	}
	if err := checkTime(cut(w.At)); err != nil {
		return err
	}
	return checkText("an owner", w.Owner, MaxOwner)
}

// Record is the entry that w writes and the head after it.
func (w Open) Record() (Entry, Head, error) {
	on := Origin(w.Tenant, w.ID)
	on.Epoch = 1
	return on.Next(w.At, "", SessionOpened{w.Owner, w.Attributes})
}

// Record is the entry that w writes behind the current head, and the head after it.
func (w Activate) Record(current Head) (Entry, Head, error) {
	current.Epoch++
	return current.Next(w.At, "", SessionActivated{w.Owner})
}

// Check reports a bad name or a value over MaxStateValue.
func (w Put) Check() error {
	if err := ValidateTenant(w.Tenant); err != nil {
		return err
	}
	if err := ValidateStateKey(w.Key); err != nil {
		return err
	}
	if len(w.Value) > MaxStateValue {
		return vakerr.New(vakerr.TooLarge, "the value of %s has %d bytes, the limit is %d", w.Key, len(w.Value), MaxStateValue)
	}
	return nil
}

// ValidateStateKey accepts 1 to 128 characters of the alphabet of session ids.
func ValidateStateKey(key string) error { return checkName("state key", key, MaxStateKey) }

// Check reports entries that are none, too many, out of bounds, broken as a chain, or written under another epoch than
// On's. session_opened and session_activated belong to Open and Activate.
func (w Append) Check() error {
	if err := ValidateTenant(w.Tenant); err != nil {
		return err
	}
	if len(w.Entries) == 0 || len(w.Entries) > MaxEntries {
		return vakerr.New(vakerr.InvalidRequest, "an append of %d entries, it takes 1 to %d", len(w.Entries), MaxEntries)
	}
	v := ResumeVerifier(w.On)
	operations := map[string]bool{}
	for i, e := range w.Entries {
		if err := e.check(); err != nil {
			return err
		}
		if err := v.Next(e); err != nil {
			return vakerr.New(vakerr.InvalidRequest, "entry %d of an append does not follow the one before it", i).WithCause(err)
		}
		if e.Operation != "" && operations[e.Operation] {
			return OperationTaken(w.On.Session, e.Operation)
		}
		operations[e.Operation] = true
		switch {
		case e.Epoch != w.On.Epoch:
			return vakerr.New(vakerr.InvalidRequest, "entry %d of an append has another epoch than its writer", i)
		case e.Kind == KindSessionOpened || e.Kind == KindSessionActivated:
			return vakerr.New(vakerr.InvalidRequest, "an append cannot hold a %s entry", e.Kind).
				WithRemedy("open or activate the session")
		case e.Kind == KindSessionClosed && i != len(w.Entries)-1:
			return vakerr.New(vakerr.InvalidRequest, "entry %d of an append closes the session and is not its last", i)
		}
	}
	return nil
}

// Closes reports whether w closes its session.
func (w Append) Closes() bool { return w.Entries[len(w.Entries)-1].Kind == KindSessionClosed }

// Last is the head after w.
func (w Append) Last() Head { return w.On.after(w.Entries[len(w.Entries)-1]) }

// Refusal says why info forbids w; nil when w may be written. Stores settle every doubtful append with it, so that all
// give the same answer.
func (w Append) Refusal(info SessionInfo) error {
	id := w.On.Session
	switch {
	case info.State == StateClosed:
		return SessionIsClosed(id)
	case w.On.Epoch != info.Head.Epoch:
		return fenced(id, "it is written under epoch %d now, this writer holds %d", info.Head.Epoch, w.On.Epoch)
	case w.On.Seq != info.Head.Seq || w.On.Hash != info.Head.Hash:
		return fenced(id, "it ends at sequence %d, this writer expects another end at %d", info.Head.Seq, w.On.Seq)
	}
	return nil
}
