package session

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Reserved attributes keep what a session is, for its next activation. Clients cannot set them.
const (
	reserved       = "vak."
	attrChannel    = "vak.channel"
	attrAttended   = "vak.attended"
	attrWritePaths = "vak.write-paths" // ASCII JSON
)

const (
	defaultChannel = "api"
	mcpChannel     = "mcp" // the MCP front's: host-only tools are hidden on it
	maxAttributes  = 16
)

// identity is what a session is, from its opening on.
type identity struct {
	caller     dispatch.Caller
	writePaths []string
	attributes map[string]string // as stored, the reserved ones included
	created    time.Time
}

// woke is the outcome of an activation.
type woke struct {
	identity identity
	head     ledger.Head
	memory   memory
	resumed  bool
	err      error
}

// memory is what an activation must know of earlier ones.
type memory struct {
	told       capability.Epoch    // of the last turn
	turns      bool                // there was a turn
	loaded     []string            // by readings and searches
	interfaces map[string]struct{} // digests known to be stored
}

// attributesOf checks an opening and writes what it says as attributes.
func attributesOf(m *sessionv1.OpenSession) (map[string]string, error) {
	if len(m.GetAttributes()) > maxAttributes {
		return nil, vakerr.New(vakerr.TooMany, "%d attributes, a session has at most %d", len(m.GetAttributes()), maxAttributes)
	}
	all := make(map[string]string, len(m.GetAttributes())+3)
	for k, v := range m.GetAttributes() {
		if strings.HasPrefix(k, reserved) {
			return nil, vakerr.New(vakerr.InvalidRequest, "attributes that begin with %s are not a client's to set", reserved)
		}
		all[k] = v
	}
	all[attrChannel] = channelOf(m)
	all[attrAttended] = strconv.FormatBool(m.GetAttended())
	if len(m.GetWritePaths()) > 0 {
		text, err := json.Marshal(m.GetWritePaths())
		if err != nil {
			return nil, err
		}
		all[attrWritePaths] = strconv.QuoteToASCII(string(text))
	}
	return all, nil
}

func channelOf(m *sessionv1.OpenSession) string {
	if m.GetChannel() == "" {
		return defaultChannel
	}
	return m.GetChannel()
}

func identityOf(attributes map[string]string, created time.Time) (identity, error) {
	id := identity{attributes: attributes, created: created}
	id.caller.Channel = attributes[attrChannel]
	id.caller.Attended = attributes[attrAttended] == "true"
	id.caller.MCPFront = id.caller.Channel == mcpChannel
	if quoted := attributes[attrWritePaths]; quoted != "" {
		text, err := strconv.Unquote(quoted)
		if err != nil {
			return identity{}, vakerr.New(vakerr.LedgerCorrupt, "the write paths of the session cannot be read").WithCause(err)
		}
		if err := json.Unmarshal([]byte(text), &id.writePaths); err != nil {
			return identity{}, vakerr.New(vakerr.LedgerCorrupt, "the write paths of the session cannot be read").WithCause(err)
		}
	}
	return id, nil
}

// wake opens the session where open says so and there is none yet, else it activates the existing one. It blocks.
func (c *Config) wake(ctx context.Context, id ledger.SessionID, open *sessionv1.OpenSession) woke {
	if open != nil {
		w := c.open(ctx, id, open)
		if vakerr.CodeOf(w.err) != vakerr.SessionExists {
			return w
		}
	}
	return c.activate(ctx, id)
}

func (c *Config) open(ctx context.Context, id ledger.SessionID, m *sessionv1.OpenSession) woke {
	attributes, err := attributesOf(m)
	if err != nil {
		return woke{err: err}
	}
	now := time.Now()
	identity, err := identityOf(attributes, now)
	if err != nil {
		return woke{err: err}
	}
	out := c.commit(ctx, ledger.Open{Tenant: c.Tenant, ID: id, Owner: c.Owner, At: now, Attributes: attributes})
	return woke{identity: identity, head: out.Head, err: out.Err, memory: memory{interfaces: map[string]struct{}{}}}
}

func (c *Config) activate(ctx context.Context, id ledger.SessionID) woke {
	info, err := c.Ledger.Session(ctx, c.Tenant, id)
	if err != nil {
		return woke{err: err}
	}
	identity, err := identityOf(info.Attributes, info.CreatedAt)
	if err != nil {
		return woke{err: err}
	}
	out := c.commit(ctx, ledger.Activate{Tenant: c.Tenant, ID: id, Owner: c.Owner, At: time.Now()})
	if out.Err != nil {
		return woke{err: out.Err}
	}
	memory, err := c.remember(ctx, id, out.Head.Seq)
	return woke{identity: identity, head: out.Head, memory: memory, resumed: true, err: err}
}

func (c *Config) commit(ctx context.Context, w ledger.Write) ledger.Outcome {
	answer := make(chan ledger.Outcome, 1)
	c.Ledger.Submit(w, true, func(out ledger.Outcome) { answer <- out })
	select {
	case out := <-answer:
		return out
	case <-ctx.Done():
		return ledger.Outcome{Err: ledger.Unknown(context.Cause(ctx))}
	}
}

// replayPage is how many entries are read at a time, from the end, until the last turn is found.
const replayPage = 256

// remember finds what earlier activations left: the last turn's epoch, what was loaded, and which interfaces are
// stored. It reads backwards until it has seen a turn, so a long history costs no more than its last part. An interface
// that was stored before that is stored again when it is next shown.
func (c *Config) remember(ctx context.Context, id ledger.SessionID, head uint64) (memory, error) {
	m := memory{interfaces: map[string]struct{}{}}
	for end := head; end > 0 && !m.turns; {
		from := uint64(1)
		if end > replayPage {
			from = end - replayPage + 1
		}
		entries, err := c.Ledger.Read(ctx, c.Tenant, id, from, int(end-from+1))
		if err != nil {
			return memory{}, err
		}
		for _, e := range entries {
			if err := m.take(e); err != nil {
				return memory{}, err
			}
		}
		end = from - 1
	}
	return m, nil
}

func (m *memory) take(e ledger.Entry) error {
	switch e.Kind {
	case ledger.KindTurnBegan, ledger.KindInterfaceStored, ledger.KindToolsLoaded:
	default:
		return nil
	}
	body, err := ledger.DecodeBody(e)
	if err != nil {
		return err
	}
	switch b := body.(type) {
	case ledger.TurnBegan:
		m.told, m.turns = b.CapabilityEpoch, true
		if b.Loaded != nil {
			m.loaded = b.Loaded
		}
	case ledger.ToolsLoaded:
		m.loaded = append(m.loaded, b.Tools...)
	case ledger.InterfaceStored:
		m.interfaces[b.Digest] = struct{}{}
	}
	return nil
}

// describe is a session as the store knows it: one that is open and not in memory is passivated.
func describe(info ledger.SessionInfo) *sessionv1.Session {
	state := "passivated"
	if info.State == ledger.StateClosed {
		state = "closed"
	}
	s := &sessionv1.Session{
		Tenant: info.Tenant, SessionId: string(info.ID), Channel: info.Attributes[attrChannel], State: state,
		Head: info.Head.Seq, CreatedMs: info.CreatedAt.UnixMilli(), LastMs: info.LastAt.UnixMilli(), Attributes: map[string]string{},
	}
	for k, v := range info.Attributes {
		if !strings.HasPrefix(k, reserved) {
			s.Attributes[k] = v
		}
	}
	return s
}
