package session

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/approval"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Reserved attributes keep what a session is, for its next activation. Clients cannot set them.
const (
	reserved       = "vak."
	attrChannel    = "vak.channel"
	attrAttended   = "vak.attended"
	attrWritePaths = "vak.write-paths" // packed
	attrWorker     = "vak.worker"      // packed
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
	worker     *worker           // nil: it is none
	attributes map[string]string // as stored, the reserved ones included
	created    time.Time
}

// woke is the outcome of an activation.
type woke struct {
	identity identity
	lent     *lent
	over     error // of a worker: the turn it served has ended
	head     ledger.Head
	memory   memory
	resumed  bool
	err      error
}

// memory is what an activation must know of earlier ones.
type memory struct {
	told       capability.Epoch     // of the last turn
	turns      bool                 // there was a turn
	started    bool                 // session-start was delivered, or an explicit turn began before it was
	stops      int                  // how often in a row hooks kept the run from stopping
	loaded     []string             // by readings and searches
	misreads   uint64               // of all turns
	interfaces map[string]struct{}  // digests known to be stored
	allowances *dispatch.Allowances // that answers left to the session
	unsettled  unsettled            // approvals that an earlier activation waited for when it ended
}

func newMemory() memory {
	return memory{interfaces: map[string]struct{}{}, allowances: &dispatch.Allowances{}}
}

// unsettled tells questions without an end. Entries may come in any order.
type unsettled struct {
	asked   []ledger.ApprovalAsked
	settled map[string]struct{}
}

func (u *unsettled) end(approval string) {
	if u.settled == nil {
		u.settled = make(map[string]struct{})
	}
	u.settled[approval] = struct{}{}
}

// bodies settle what is left: nobody can answer it any more, and its calls ended with the activation.
func (u *unsettled) bodies() []ledger.Body {
	var all []ledger.Body
	for _, a := range u.asked {
		if _, ended := u.settled[a.Approval]; !ended {
			all = append(all, ledger.ApprovalSettled{
				Turn: a.Turn, Call: a.Call, Approval: a.Approval, Outcome: ledger.ApprovalExpired,
				Reason:    "the daemon, or the session's activation, ended before anybody answered; the call did not run",
				ErrorCode: vakerr.ApprovalExpired,
			})
		}
	}
	return all
}

// identityFor checks the opening of a session that is no worker.
func identityFor(m *sessionv1.OpenSession) identity {
	i := identity{writePaths: m.GetWritePaths()}
	i.caller = dispatch.Caller{Channel: cmp.Or(m.GetChannel(), defaultChannel), Attended: m.GetAttended()}
	i.caller.MCPFront = i.caller.Channel == mcpChannel
	return i
}

// attributesOf writes what a session is as attributes, beside those of its opening.
func attributesOf(i identity, m *sessionv1.OpenSession) (map[string]string, error) {
	if len(m.GetAttributes()) > maxAttributes {
		return nil, vakerr.New(vakerr.TooMany, "%d attributes, a session has at most %d", len(m.GetAttributes()), maxAttributes)
	}
	all := make(map[string]string, len(m.GetAttributes())+4)
	for k, v := range m.GetAttributes() {
		if strings.HasPrefix(k, reserved) {
			return nil, vakerr.New(vakerr.InvalidRequest, "attributes that begin with %s are not a client's to set", reserved)
		}
		all[k] = v
	}
	all[attrChannel] = i.caller.Channel
	all[attrAttended] = strconv.FormatBool(i.caller.Attended)
	if err := op.CheckWritePaths(i.writePaths); err != nil {
		return nil, err
	}
	if len(i.writePaths) > 0 {
		if err := pack(all, attrWritePaths, "write paths", i.writePaths); err != nil {
			return nil, err
		}
	}
	if i.worker != nil {
		if err := pack(all, attrWorker, "tools of a worker", i.worker); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// maxParts is how many attributes hold one packed value.
const maxParts = 6

// pack writes a value as ASCII JSON, over several attributes where one is too short: key, key.1 and so on.
func pack(all map[string]string, key, what string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	quoted := strconv.QuoteToASCII(string(text))
	if len(quoted) > maxParts*ledger.MaxAttributeValue {
		return vakerr.New(vakerr.TooLarge, "the %s of a session take %d bytes, at most %d are kept", what, len(quoted), maxParts*ledger.MaxAttributeValue).
			WithRemedy("name folders or globs instead of each")
	}
	for n := 0; quoted != ""; n++ {
		part := quoted[:min(len(quoted), ledger.MaxAttributeValue)]
		all[partKey(key, n)], quoted = part, quoted[len(part):]
	}
	return nil
}

func partKey(key string, n int) string {
	if n == 0 {
		return key
	}
	return key + "." + strconv.Itoa(n)
}

// unpack reads what pack wrote; it reports whether there was anything.
func unpack(all map[string]string, key string, value any) (found bool, err error) {
	var quoted strings.Builder
	for n := 0; all[partKey(key, n)] != ""; n++ {
		quoted.WriteString(all[partKey(key, n)])
	}
	if quoted.Len() == 0 {
		return false, nil
	}
	text, err := strconv.Unquote(quoted.String())
	if err == nil {
		err = json.Unmarshal([]byte(text), value)
	}
	if err != nil {
		return true, vakerr.New(vakerr.LedgerCorrupt, "what the session is cannot be read: its attribute %s", key).WithCause(err)
	}
	return true, nil
}

func identityOf(attributes map[string]string, created time.Time) (identity, error) {
	id := identity{attributes: attributes, created: created}
	id.caller.Channel = attributes[attrChannel]
	id.caller.Attended = attributes[attrAttended] == "true"
	id.caller.MCPFront = id.caller.Channel == mcpChannel
	if _, err := unpack(attributes, attrWritePaths, &id.writePaths); err != nil {
		return identity{}, err
	}
	var w worker
	found, err := unpack(attributes, attrWorker, &w)
	if found {
		id.worker = &w
	}
	return id, err
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
	w := woke{identity: identityFor(m), memory: newMemory()}
	if m.GetWorker() != nil {
		if _, err := c.Ledger.Session(ctx, c.Tenant, id); err == nil { // its parent must not hear of it twice
			return woke{err: vakerr.New(vakerr.SessionExists, "session %s exists", id)}
		}
		var err error
		if w.identity, w.lent, err = c.hire(ctx, id, m); err != nil {
			return woke{err: err}
		}
	}
	if w.err = c.create(ctx, id, m, &w); w.err != nil && w.identity.worker != nil {
		c.dismiss(w.identity.worker, id)
	}
	return w
}

func (c *Config) create(ctx context.Context, id ledger.SessionID, m *sessionv1.OpenSession, w *woke) (err error) {
	i := &w.identity
	if i.attributes, err = attributesOf(*i, m); err != nil {
		return err
	}
	i.created = time.Now()
	out := c.commit(ctx, ledger.Open{Tenant: c.Tenant, ID: id, Owner: c.Owner, At: i.created, Attributes: i.attributes})
	w.head = out.Head
	return out.Err
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
	w := woke{identity: identity, resumed: true}
	if identity.worker != nil {
		w.lent, err = c.borrow(ctx, identity.worker, id)
		switch {
		case vakerr.CodeOf(err) == vakerr.TurnEnded:
			w.over = err
		case err != nil:
			return woke{err: err}
		}
	}
	out := c.commit(ctx, ledger.Activate{Tenant: c.Tenant, ID: id, Owner: c.Owner, At: time.Now()})
	if out.Err != nil {
		return woke{err: out.Err}
	}
	w.head = out.Head
	w.memory, w.err = c.remember(ctx, id, out.Head.Seq)
	return w
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
	m := newMemory()
	var tail []ledger.Entry // of the kinds that tell, in their order
	for end, turns := head, false; end > 0 && !turns; {
		from := uint64(1)
		if end > replayPage {
			from = end - replayPage + 1
		}
		entries, err := c.Ledger.Read(ctx, c.Tenant, id, from, int(end-from+1))
		if err != nil {
			return memory{}, err
		}
		entries = slices.DeleteFunc(entries, func(e ledger.Entry) bool { return !tells(e.Kind) })
		turns = slices.ContainsFunc(entries, func(e ledger.Entry) bool { return e.Kind == ledger.KindTurnBegan })
		tail = append(entries, tail...)
		end = from - 1
	}
	for _, e := range tail {
		if err := m.take(e); err != nil {
			return memory{}, err
		}
	}
	return m, nil
}

// tells reports whether an activation remembers something of entries of a kind.
func tells(k ledger.Kind) bool {
	switch k {
	case ledger.KindTurnBegan, ledger.KindTurnEnded, ledger.KindInterfaceStored, ledger.KindToolsLoaded,
		ledger.KindApprovalAsked, ledger.KindApprovalSettled, ledger.KindHookRan:
		return true
	default:
		return false
	}
}

func (m *memory) take(e ledger.Entry) error {
	body, err := ledger.DecodeBody(e)
	if err != nil {
		return err
	}
	switch b := body.(type) {
	case ledger.TurnBegan:
		m.told, m.turns, m.misreads = b.CapabilityEpoch, true, b.Misreads
		m.allowances.Add(b.Allowed)
		m.started = m.started || b.Started || !b.Implicit
		if b.Loaded != nil {
			m.loaded = b.Loaded
		}
	case ledger.TurnEnded:
		m.misreads += uint64(len(b.Misread))
		m.stops = b.Stops
	case ledger.HookRan:
		if b.Event == string(hook.SessionStart) {
			m.started = b.Decision != hook.Block.String()
		}
	case ledger.ToolsLoaded:
		m.loaded = append(m.loaded, b.Tools...)
	case ledger.InterfaceStored:
		m.interfaces[b.Digest] = struct{}{}
	case ledger.ApprovalAsked:
		m.unsettled.asked = append(m.unsettled.asked, b)
	case ledger.ApprovalSettled:
		m.unsettled.end(b.Approval)
		if b.Scope == string(approval.Session) {
			m.allowances.Add(b.Rules)
		}
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
	if i, err := identityOf(info.Attributes, info.CreatedAt); err == nil { // who uses the session hears of the error
		s.WritePaths, s.Worker = i.writePaths, i.worker.describe()
	}
	for k, v := range info.Attributes {
		if !strings.HasPrefix(k, reserved) {
			s.Attributes[k] = v
		}
	}
	return s
}
