package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxAnswer bounds an answer of the daemon, in bytes; the daemon itself shortens results long before.
const maxAnswer = 64 << 20

// reply is what came back for a POST.
type reply struct {
	frame   []byte // the answer; empty when there is none
	session string // Mcp-Session-Id, of initialize
	begun   bool   // the daemon may have begun with it when the error happened
}

// errAway is the failure to reach the daemon at all. It is told to the client only when its patience ends.
var errAway = vakerr.New(vakerr.DaemonUnreachable, "the daemon does not answer").
	WithRemedy("start it with `vak-actors serve`, or wait until it is back")

// post sends one frame and waits for its answer; what comes before the answer is passed on at once. id is that of the
// request. Errors: errNoSession, shutting_down or errAway when the daemon has not begun with it, unless reply says so.
func (b *bridge) post(ctx context.Context, raw []byte, at link, id json.RawMessage) (reply, error) {
	r, err := b.request(ctx, http.MethodPost, bytes.NewReader(raw), at)
	if err != nil {
		return reply{}, err
	}
	resp, err := b.o.Client.Do(r)
	if err != nil {
		return reply{begun: !notDialled(err)}, errAway.WithCause(err)
	}
	defer func() { _ = resp.Body.Close() }()
	out := reply{session: resp.Header.Get(mcp.HeaderSessionID)}
	switch {
	case resp.StatusCode == http.StatusNotFound && at.session != "":
		return out, errNoSession
	case resp.StatusCode == http.StatusServiceUnavailable:
		return out, errStopping
	case resp.StatusCode == http.StatusAccepted:
		return out, nil
	case strings.HasPrefix(resp.Header.Get("Content-Type"), contentEvents):
		out.frame, err = b.events(resp.Body, id)
	default:
		out.frame, err = whole(resp.Body, id)
	}
	out.begun = err != nil
	return out, err
}

func (b *bridge) request(ctx context.Context, method string, body io.Reader, at link) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.o.URL, body)
	if err != nil {
		return nil, vakerr.New(vakerr.InvalidRequest, "the address of the daemon is none").WithCause(err)
	}
	maps.Copy(r.Header, b.o.Header)
	r.Header.Set("Content-Type", contentJSON)
	r.Header.Set("Accept", contentJSON+", "+contentEvents)
	r.Header.Set(SessionKeyHeader, b.key)
	if at.session != "" {
		r.Header.Set(mcp.HeaderSessionID, at.session)
	}
	if at.version != "" {
		r.Header.Set(mcp.HeaderProtocolVersion, at.version)
	}
	maps.Copy(r.Header, at.stated)
	return r, nil
}

// notDialled reports whether a request was never sent.
func notDialled(err error) bool {
	var o *net.OpError
	return errors.As(err, &o) && o.Op == "dial"
}

// whole reads an answer in one piece. What the daemon refused as a whole names no id; the client gets its own back.
func whole(body io.Reader, id json.RawMessage) ([]byte, error) {
	frame, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err != nil {
		return nil, errAway.WithCause(err)
	}
	var in struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   json.RawMessage `json:"error"`
	}
	if len(frame) > maxAnswer || json.Unmarshal(frame, &in) != nil || in.Version != mcp.JSONRPC_VERSION {
		return nil, vakerr.New(vakerr.InvalidRequest, "what answers at the address of the daemon is no daemon").
			WithRemedy("check the address")
	}
	if len(in.Error) > 0 && (len(in.ID) == 0 || bytes.Equal(in.ID, []byte("null"))) && len(id) > 0 {
		return encode(struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Error   json.RawMessage `json:"error"`
		}{in.Version, id, in.Error}), nil
	}
	return oneLine(frame), nil
}

// events reads the stream of a request up to its answer, and passes on what comes before.
func (b *bridge) events(body io.Reader, id json.RawMessage) ([]byte, error) {
	events := newEventReader(body)
	for {
		e, err := events.next()
		if err != nil {
			return nil, errAway.WithCause(err)
		}
		if m, bad := decode(e.data); bad == nil && m.Method == "" {
			return e.data, nil
		}
		if !b.cancelled(id) {
			b.out.write(e.data)
		}
	}
}

func (b *bridge) cancelled(id json.RawMessage) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[string(id)]
}

// listen follows the standing stream of each link and passes on what the daemon says unasked, until ctx ends.
func (b *bridge) listen(ctx context.Context) {
	select {
	case <-b.linked:
	case <-ctx.Done():
		return
	}
	var last string // event of the link that was read last
	for pause, number := time.Duration(0), 0; ctx.Err() == nil; {
		at := b.current()
		if at.number != number {
			last, number = "", at.number
		}
		began := time.Now()
		err := b.stand(ctx, at, &last)
		switch {
		case errors.Is(err, errNoStream):
			return
		case errors.Is(err, errNoSession):
			patience, cancel := context.WithTimeout(ctx, b.o.Patience)
			err = b.reconnect(ctx, patience, at)
			cancel()
			if err == nil {
				pause = 0
				continue
			}
		case time.Since(began) > keepAlive:
			pause = 0
		}
		if !sleep(ctx, &pause) {
			return
		}
	}
}

// errNoStream says that the daemon has no standing stream to offer.
var errNoStream = errors.New("no stream")

// stand reads the standing stream once, to its end.
func (b *bridge) stand(ctx context.Context, at link, last *string) error {
	r, err := b.request(ctx, http.MethodGet, nil, at)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", contentEvents)
	if *last != "" {
		r.Header.Set(mcp.HeaderLastEventID, *last)
	}
	resp, err := b.o.Client.Do(r)
	if err != nil {
		return errAway.WithCause(err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return errNoSession
	case http.StatusMethodNotAllowed:
		return errNoStream
	default:
		return errAway
	}
	events := newEventReader(resp.Body)
	for {
		e, err := events.next()
		if err != nil {
			return errAway.WithCause(err)
		}
		*last = e.id
		b.out.write(e.data)
	}
}

// sentEvent is one server-sent event that carries data.
type sentEvent struct {
	id   string
	data []byte // on one line
}

// eventReader reads server-sent events.
type eventReader struct{ lines *lineReader }

func newEventReader(body io.Reader) eventReader { return eventReader{newLineReader(body, maxAnswer)} }

// next returns the next event with data; comments and events without any are skipped.
func (r eventReader) next() (sentEvent, error) {
	var e sentEvent
	for {
		line, err := r.lines.line()
		if err != nil {
			return sentEvent{}, err
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0 && len(e.data) > 0:
			return e, nil
		case string(field) == "id":
			e.id = string(value)
		case string(field) == "data":
			if len(e.data)+len(value) > maxAnswer {
				return sentEvent{}, errFrame
			}
			if len(e.data) > 0 {
				e.data = append(e.data, ' ') // a line break between tokens
			}
			e.data = append(e.data, value...)
		}
	}
}
