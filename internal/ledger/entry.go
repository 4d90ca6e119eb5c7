package ledger

import (
	"encoding/hex"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of an entry, in bytes.
const (
	MaxBody      = 1 << 20
	MaxOperation = 256
)

// Hash is a SHA-256 sum; lower-case hex in text.
type Hash [32]byte

// String is lower-case hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText is lower-case hex.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return vakerr.New(vakerr.InvalidRequest, "a hash of %d characters, it has %d", len(text), hex.EncodedLen(len(h)))
	}
	if _, err := hex.Decode(h[:], text); err != nil {
		return vakerr.New(vakerr.InvalidRequest, "a hash that is not hexadecimal").WithCause(err)
	}
	return nil
}

// Entry is one record of a session. It is never changed after Head.Next made it. Its JSON form keeps every byte that is
// hashed, so an exported ledger can be verified elsewhere.
type Entry struct {
	Session   SessionID       `json:"session"`
	Seq       uint64          `json:"seq"`   // 1-based, no gaps
	Epoch     uint64          `json:"epoch"` // the writer's activation epoch
	At        time.Time       `json:"at"`    // UTC, whole microseconds
	Kind      Kind            `json:"kind"`
	Operation string          `json:"operation,omitempty"` // finds the entry after an unknown outcome; unique in the session when set
	Body      json.RawMessage `json:"body"`                // one JSON object, spelled as json.Marshal spells it
	Prev      Hash            `json:"prev"`
	Hash      Hash            `json:"hash"`
}

// Head is the end of a chain as its writer knows it.
type Head struct {
	Session SessionID `json:"session"`
	Seq     uint64    `json:"seq"`   // of the last entry; 0 before the first
	Epoch   uint64    `json:"epoch"` // of the writer
	Hash    Hash      `json:"hash"`  // of the last entry; Genesis before the first
}

// Next makes the entry that follows h and the head after it. at is cut to microseconds. It returns too_large for a body
// over MaxBody or an operation over MaxOperation, and invalid_request for a body that does not encode.
func (h Head) Next(at time.Time, operation string, body Body) (Entry, Head, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return Entry{}, h, vakerr.New(vakerr.InvalidRequest, "the %s entry cannot be encoded", body.Kind()).WithCause(err)
	}
	e := Entry{
		Session: h.Session, Seq: h.Seq + 1, Epoch: h.Epoch, At: cut(at),
		Kind: body.Kind(), Operation: operation, Body: raw, Prev: h.Hash,
	}
	if err := e.checkFields(); err != nil {
		return Entry{}, h, err
	}
	if len(raw) > MaxBody || raw[0] != '{' || !utf8.Valid(raw) { // json.Marshal has seen to the rest
		return Entry{}, h, checkBody(raw)
	}
	e.Hash = Chain(e.Prev, e)
	return e, h.after(e), nil
}

func (h Head) after(e Entry) Head { return Head{h.Session, e.Seq, e.Epoch, e.Hash} }

// check reports what makes an entry unfit for any ledger, whatever came before it: bounds, names and spelling.
func (e Entry) check() error {
	if err := e.checkFields(); err != nil {
		return err
	}
	return checkBody(e.Body)
}

// checkFields is check without the body.
func (e Entry) checkFields() error {
	if err := ValidateSessionID(e.Session); err != nil {
		return err
	}
	if !e.Kind.Known() {
		return vakerr.New(vakerr.InvalidRequest, "an entry of an unknown kind")
	}
	if err := checkText("an operation id", e.Operation, MaxOperation); err != nil {
		return err
	}
	return checkTime(e.At)
}

// cut drops what an entry does not keep of a time: its zone, its monotonic part, and all below a microsecond.
func cut(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }

func checkTime(at time.Time) error {
	if year := at.Year(); !at.Equal(cut(at)) || at.Location() != time.UTC || year < 1970 || year > 9999 {
		return vakerr.New(vakerr.InvalidRequest, "the time of an entry is not UTC, in whole microseconds, from 1970 to 9999")
	}
	return nil
}

// checkBody insists on the spelling of json.Marshal, because every other would be respelled, and its hash lost, when the
// entry is exported as JSON.
func checkBody(raw json.RawMessage) error {
	if len(raw) > MaxBody {
		return vakerr.New(vakerr.TooLarge, "an entry body has %d bytes, the limit is %d", len(raw), MaxBody).
			WithRemedy("record a digest in place of the large value")
	}
	if len(raw) == 0 || raw[0] != '{' || !utf8.Valid(raw) {
		return vakerr.New(vakerr.InvalidRequest, "an entry body is not a JSON object in UTF-8")
	}
	if !json.Valid(raw) || !spelledAsMarshal(raw) {
		return vakerr.New(vakerr.InvalidRequest, "an entry body is not JSON as json.Marshal spells it")
	}
	return nil
}

// spelledAsMarshal reports whether json.Marshal would leave valid JSON as it is: without space between tokens, and with
// what HTML or JavaScript could take for its own (<, >, &, U+2028, U+2029) escaped.
func spelledAsMarshal(raw []byte) bool {
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '<' || c == '>' || c == '&':
			return false
		case c == 0xe2 && i+2 < len(raw) && raw[i+1] == 0x80 && raw[i+2]&^1 == 0xa8:
			return false
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++ // what it escapes is not the end
		case !quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			return false
		}
	}
	return true
}
