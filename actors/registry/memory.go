package registry

import (
	"context"
	"encoding/json"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/pins"
)

// Remembered is everything a registry takes up after a restart.
type Remembered struct {
	Epoch        RememberedEpoch
	Revocations  capability.Revocations
	Observations map[string]*RememberedObservation // by server
	Pins         pins.Book
	Seen         bool
}

// RememberedEpoch is the last published epoch. Of its set only the marks are kept.
type RememberedEpoch struct {
	Epoch   capability.Epoch  `json:"epoch"`
	Digest  string            `json:"digest"`
	Marks   capability.Marks  `json:"marks"`
	History []capability.Step `json:"history"`
}

// RememberedObservation is an observation with the definition it was made under.
type RememberedObservation struct {
	Server      string                  `json:"server"`
	Definition  string                  `json:"definition"`
	Observation *capability.Observation `json:"observation"`
}

// Values is the part of the ledger's store that keeps small values of a tenant.
type Values interface {
	State(ctx context.Context, tenant, key string) (value []byte, found bool, err error)
	StateKeys(ctx context.Context, tenant, prefix string) ([]string, error)
	Put(ctx context.Context, tenant, key string, value []byte) error // durable on return; an empty value removes
}

// Keys of the values. Names hold what keys must not, so a digest of the name is part of the key, and the name of the value.
const (
	epochKey          = "registry.epoch"
	revocationsKey    = "registry.revocations"
	observationPrefix = "registry.observation."
	pinPrefix         = "registry.pin."
	seenKey           = "registry.seen"
)

// NewMemory keeps a registry's memory in values.
func NewMemory(tenant string, values Values) Memory { return &memory{tenant, values} }

type memory struct {
	tenant string
	values Values
}

// Load implements Memory.
func (m *memory) Load(ctx context.Context) (Remembered, error) {
	all := Remembered{Observations: make(map[string]*RememberedObservation)}
	if err := m.load(ctx, epochKey, &all.Epoch); err != nil {
		return Remembered{}, err
	}
	if err := m.load(ctx, revocationsKey, &all.Revocations); err != nil {
		return Remembered{}, err
	}
	keys, err := m.values.StateKeys(ctx, m.tenant, observationPrefix)
	if err != nil {
		return Remembered{}, err
	}
	for _, key := range keys {
		var o RememberedObservation
		if err := m.load(ctx, key, &o); err != nil {
			return Remembered{}, err
		}
		if o.Observation != nil && o.Server != "" {
			all.Observations[o.Server] = &o
		}
	}
	if err := m.load(ctx, seenKey, &all.Seen); err != nil {
		return Remembered{}, err
	}
	return all, m.loadPins(ctx, &all)
}

func (m *memory) loadPins(ctx context.Context, all *Remembered) error {
	keys, err := m.values.StateKeys(ctx, m.tenant, pinPrefix)
	if err != nil {
		return err
	}
	all.Pins = make(pins.Book, len(keys))
	for _, key := range keys {
		var e rememberedPins
		if err := m.load(ctx, key, &e); err != nil {
			return err
		}
		if e.Entry != nil {
			all.Pins[e.ID] = e.Entry
		}
	}
	return nil
}

type rememberedPins struct {
	ID    capability.ID `json:"id"`
	Entry *pins.Entry   `json:"entry"`
}

// keyOf is a key for something of any name.
func keyOf(prefix, name string) string { return prefix + capability.ContentDigest([]byte(name))[:32] }

// SaveSeen implements Memory.
func (m *memory) SaveSeen(ctx context.Context, seen bool) error { return m.save(ctx, seenKey, seen) }

// SavePins implements Memory.
func (m *memory) SavePins(ctx context.Context, id capability.ID, e *pins.Entry) error {
	key := keyOf(pinPrefix, id.String())
	if e == nil {
		return m.values.Put(ctx, m.tenant, key, nil)
	}
	return m.save(ctx, key, rememberedPins{id, e})
}

func (m *memory) load(ctx context.Context, key string, into any) error {
	text, found, err := m.values.State(ctx, m.tenant, key)
	if err != nil || !found {
		return err
	}
	return json.Unmarshal(text, into)
}

// SaveEpoch implements Memory.
func (m *memory) SaveEpoch(ctx context.Context, e RememberedEpoch) error {
	return m.save(ctx, epochKey, e)
}

// SaveRevocations implements Memory.
func (m *memory) SaveRevocations(ctx context.Context, r capability.Revocations) error {
	return m.save(ctx, revocationsKey, r)
}

// SaveObservation implements Memory.
func (m *memory) SaveObservation(ctx context.Context, server string, o *RememberedObservation) error {
	key := keyOf(observationPrefix, server)
	if o == nil {
		return m.values.Put(ctx, m.tenant, key, nil)
	}
	named := *o
	named.Server = server
	return m.save(ctx, key, named)
}

func (m *memory) save(ctx context.Context, key string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return m.values.Put(ctx, m.tenant, key, text)
}
