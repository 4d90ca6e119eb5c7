package cli

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	commonv1 "github.com/vak-actors/vak-actors/messages/vak/common/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/api"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/internal/wire"
)

// maxArguments bounds what is read from stdin, in bytes; the session's own bound is 4 MiB.
const maxArguments = 4<<20 + 1

// envelope is what call prints.
type envelope struct {
	Session  string          `json:"session"`
	Turn     string          `json:"turn"`
	Call     string          `json:"call"`
	Epoch    uint64          `json:"epoch"`
	Result   json.RawMessage `json:"result,omitempty"` // an MCP CallToolResult
	Failed   bool            `json:"failed"`
	Refusal  *refusal        `json:"refusal,omitempty"`
	Promoted []string        `json:"promoted,omitempty"`
	Repaired string          `json:"repaired,omitempty"`
}

type refusal struct {
	Code         string `json:"code"`
	Reason       string `json:"reason"`
	Remedy       string `json:"remedy,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

// callFlags are the flags of call alone.
type callFlags struct {
	session    string
	channel    string
	timeout    time.Duration
	writePaths []string
	attended   bool
}

func (a *app) call() *cobra.Command {
	var f callFlags
	c := &cobra.Command{
		Use:   "call NAME [JSON]",
		Short: "Call one tool: one session, one turn, one dispatch",
		Long: `Opens a session and a turn, calls one tool through the whole pipeline, ends both, and prints the result envelope as
JSON. Arguments are a JSON object; - reads them from standard input. With --attended a call that needs an approval is asked
about at the terminal; another terminal may answer it with approvals answer. Without, such a call is refused. Exit code 0: the tool answered; 3: the call was
refused, with the reason on stderr; 4: the tool ran and reports failure.`,
		Example: `  vak-actors call read '{"path":"README.md"}'
  vak-actors call mcp '{"action":"call","server":"notes","tool":"note_list","arguments":{}}'
  echo '{"query":"issue"}' | vak-actors call find_tools -`,
		Args: arguments(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if f.timeout < 0 {
				return misused("write how long to wait, for instance 30s", "--timeout %s is in the past", f.timeout)
			}
			if f.attended && len(args) == 2 && args[1] == "-" {
				return misused("give the arguments on the command line", "--attended reads answers from standard input, so arguments cannot come from there")
			}
			input, err := a.input(args)
			if err != nil {
				return err
			}
			return a.callOnce(c.Context(), f, args[0], input)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.session, "session", "", "session to call in, left open afterwards; default: a new one that is closed")
	flags.StringVar(&f.channel, "channel", "", "channel whose policy applies; default: api")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long to wait for the tool; default: its own limit")
	writePaths(flags, &f.writePaths)
	flags.BoolVar(&f.attended, "attended", false, "ask at the terminal where the call needs an approval")
	return a.reaches(c)
}

// writePaths defines --write-path.
func writePaths(flags *pflag.FlagSet, into *[]string) {
	flags.StringArrayVar(into, "write-path", nil, "path that write and edit may touch, and nothing else; may be repeated")
}

// input is the arguments of the call.
func (a *app) input(args []string) ([]byte, error) {
	switch {
	case len(args) < 2:
		return nil, nil
	case args[1] != "-":
		return []byte(args[1]), nil
	}
	text, err := io.ReadAll(io.LimitReader(a.in, maxArguments))
	if err != nil {
		return nil, vakerr.New(vakerr.InvalidArguments, "standard input cannot be read").WithCause(err)
	}
	return text, nil
}

// callOnce makes the call in a session of the flags' choice.
func (a *app) callOnce(ctx context.Context, f callFlags, name string, input []byte) error {
	l, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	opened, err := api.Call(ctx, l.Session.OpenSession, &sessionv1.OpenSession{
		Tenant: a.reach.tenant, SessionId: f.session, Channel: f.channel, WritePaths: f.writePaths,
		Attended: f.attended,
	})
	if err != nil {
		return err
	}
	id := opened.GetSession().GetSessionId()
	if f.session == "" {
		defer afterwards(ctx, l.Session.CloseSession, &sessionv1.CloseSession{Tenant: a.reach.tenant, SessionId: id})
	}
	turn, err := api.Call(ctx, l.Session.BeginTurn, &sessionv1.BeginTurn{Tenant: a.reach.tenant, SessionId: id})
	if err != nil {
		return err
	}
	defer afterwards(ctx, l.Session.EndTurn, &sessionv1.EndTurn{Tenant: a.reach.tenant, SessionId: id, TurnId: turn.GetTurnId()})
	dispatch := &sessionv1.Dispatch{
		Tenant: a.reach.tenant, SessionId: id, TurnId: turn.GetTurnId(),
		Name: name, ArgumentsJson: input, TimeoutMs: milliseconds(f.timeout),
	}
	result, err := a.dispatch(ctx, l, f.attended, dispatch)
	if err != nil {
		return err
	}
	return a.printEnvelope(id, turn.GetTurnId(), result)
}

func (a *app) dispatch(ctx context.Context, l *link, attended bool, m *sessionv1.Dispatch) (*sessionv1.DispatchResult, error) {
	if attended {
		return a.attend(ctx, l, m)
	}
	return api.Call(ctx, l.Session.Dispatch, m)
}

// milliseconds rounds up: less than one is not the tool's own limit, which 0 stands for.
func milliseconds(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// afterwards ends what was begun, also when the program was told to end meanwhile. What it cannot end the daemon does, when
// it is idle.
func afterwards[C, R any](ctx context.Context, method func(context.Context, *connect.Request[C]) (*connect.Response[R], error), message *C) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer done()
	_, _ = api.Call(ctx, method, message)
}

func (a *app) printEnvelope(session, turn string, r *sessionv1.DispatchResult) error {
	e := envelope{
		Session: session, Turn: turn, Call: r.GetCallId(), Epoch: r.GetEpoch(), Result: r.GetResultJson(), Failed: r.GetFailed(),
		Refusal: refusalOf(r.GetRefusal()), Promoted: r.GetPromoted(), Repaired: r.GetRepaired(),
	}
	if err := printJSON(a.out, e); err != nil {
		return vakerr.New(vakerr.OutputInvalid, "the tool's result is no JSON").WithCause(err)
	}
	switch {
	case r.GetRefusal() != nil:
		return wire.Error(r.GetRefusal())
	case r.GetFailed():
		return exit{status: exitToolFailed}
	}
	return nil
}

func refusalOf(r *commonv1.Refusal) *refusal {
	if r == nil {
		return nil
	}
	return &refusal{r.GetCode(), r.GetReason(), r.GetRemedy(), r.GetRetryAfterMs()}
}
