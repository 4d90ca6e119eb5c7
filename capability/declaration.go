package capability

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Declaration is what a reader found: a capability as its author described it. It says nothing about whether the
// capability may be used.
type Declaration struct {
	ID      ID
	Origin  Origin
	Summary string  // one or two sentences for people and models
	Serves  Domains // nil: not declared
	Digest  string  // hex SHA-256 of the content (a skill's or command's body); empty where there is none
	Source  string  // path relative to the workspace, with '/'; of another root with its prefix (~/...); or empty
	Config  Config  // never nil; its type belongs to the kind
	Hold    *Hold   // nil: nothing holds it back
}

// Hold says that a declaration is known and must not be used until a person has looked at it: it came from a source that
// nobody trusts yet, or it differs from what was approved. No reader sets it; pins do, in one place for every way in.
type Hold struct {
	Reason string `json:"reason"` // one sentence, lower case, no full stop
	Remedy string `json:"remedy"` // what a person does about it
}

// Config is the part of a declaration that belongs to its kind: *Tool, *Skill, *Server, *Hook or *Command. A Config is
// never changed after its declaration was handed over.
type Config interface {
	// Kind is the kind this configuration belongs to.
	Kind() Kind
}

// Check reports what makes a declaration unfit for a set: a missing name or a configuration of another kind.
func (d Declaration) Check() error {
	switch {
	case d.ID.Name == "":
		return fmt.Errorf("a %s from %s has no name", d.ID.Kind, d.Origin.Label())
	case d.Config == nil:
		return fmt.Errorf("%s has no configuration", d.ID)
	case d.Config.Kind() != d.ID.Kind:
		return fmt.Errorf("%s has the configuration of a %s", d.ID, d.Config.Kind())
	}
	return nil
}

// fingerprint covers everything about a declaration that a turn could notice: identity, origin label, summary, content,
// domains and configuration. The source path is left out, so moving a file is no change.
func (d Declaration) fingerprint() ([sha256.Size]byte, error) {
	config, err := json.Marshal(d.Config)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("cannot encode the configuration of %s: %v", d.ID, err)
	}
	text, err := json.Marshal(struct {
		ID      string
		Origin  string
		Summary string
		Digest  string
		Serves  Domains
		Config  json.RawMessage
		Hold    *Hold `json:",omitempty"`
	}{d.ID.String(), d.Origin.Label(), d.Summary, d.Digest, d.Serves, config, d.Hold})
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("cannot encode %s: %v", d.ID, err)
	}
	return sha256.Sum256(text), nil
}

// same reports whether nothing that a fingerprint covers differs. It may be false for equal declarations: their
// configurations are told apart by their addresses, as reading on a file that did not change yields the same one.
func (d Declaration) same(e Declaration) bool {
	return d.Config == e.Config && d.Hold == e.Hold && d.ID == e.ID && d.Origin == e.Origin && d.Summary == e.Summary && d.Digest == e.Digest &&
		slices.Equal(d.Serves, e.Serves)
}

// ContentDigest is the digest of a body: lower-case hex of its SHA-256.
func ContentDigest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// CanonicalJSON compacts raw and sorts the keys of every object, so that equal values have equal bytes. Numbers keep
// their spelling.
func CanonicalJSON(raw []byte) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("something stands after the JSON value")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
