package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	approvalv1 "github.com/vak-actors/vak-actors/messages/vak/approval/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/api"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxAnswer bounds a line of standard input that answers a question, in bytes.
const maxAnswer = 4 << 10

// attend makes a call of an attended session and puts its questions to whoever sits at the terminal. At the end of standard
// input it asks nobody any more; the call then waits for `approvals answer`, or for its deadline.
func (a *app) attend(ctx context.Context, l *link, m *sessionv1.Dispatch) (*sessionv1.DispatchResult, error) {
	asking, stop := context.WithCancel(ctx)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		a.askAtTerminal(asking, l, m)
	}()
	r, err := api.Call(ctx, l.Session.Dispatch, m)
	stop()
	<-asked
	return r, err
}

// askAtTerminal answers the questions of a session from standard input, until ctx ends.
func (a *app) askAtTerminal(ctx context.Context, l *link, m *sessionv1.Dispatch) {
	lines := a.lines(ctx)
	shown := map[string]bool{}
	for revision := uint64(0); ctx.Err() == nil; {
		r, err := api.Call(ctx, l.Approval.ListApprovals, &approvalv1.ListApprovals{
			Tenant: m.GetTenant(), SessionId: m.GetSessionId(), WaitMs: uint32(pollTimeMost.Milliseconds()), Revision: revision,
		})
		if err != nil {
			if ctx.Err() == nil {
				a.complain(vakerr.From(err))
			}
			return
		}
		revision = r.GetRevision()
		for _, q := range r.GetApprovals() {
			if shown[q.GetId()] {
				continue
			}
			shown[q.GetId()] = true
			if !a.askOne(ctx, l, m.GetTenant(), q, lines) {
				return
			}
		}
	}
}

// askOne asks until an answer can be understood. It returns false when nobody answers any more.
func (a *app) askOne(ctx context.Context, l *link, tenant string, q *approvalv1.Approval, lines <-chan string) bool {
	v := approvalOf(q)
	fmt.Fprintf(a.errs, "%s needs an approval: %s\narguments: %s\n", clean(v.Action), clean(v.Reason), clean(short(string(v.Arguments), 2000)))
	choices := "[y]es, [n]o"
	if len(v.Rules) > 0 {
		choices = "[y]es, yes for the [s]ession, [a]lways in this workspace, [n]o"
	}
	for {
		fmt.Fprintf(a.errs, "allow it? %s: ", choices)
		var line string
		var more bool
		select {
		case line, more = <-lines:
		case <-ctx.Done():
		}
		if !more {
			fmt.Fprintln(a.errs)
			return false
		}
		answer, understood := answerTo(q, line)
		if !understood {
			continue
		}
		answer.Tenant, answer.By = tenant, userName()
		if _, err := api.Call(ctx, l.Approval.AnswerApproval, answer); err != nil && ctx.Err() == nil {
			a.complain(vakerr.From(err))
		}
		return true
	}
}

func answerTo(q *approvalv1.Approval, line string) (*approvalv1.AnswerApproval, bool) {
	m := &approvalv1.AnswerApproval{
		Id: q.GetId(), InputDigest: q.GetInputDigest(),
		Decision: approvalv1.Decision_DECISION_ALLOW, Scope: approvalv1.Scope_SCOPE_ONCE,
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
	case "n", "no":
		m.Decision = approvalv1.Decision_DECISION_DENY
	case "s", "session":
		m.Scope = approvalv1.Scope_SCOPE_SESSION
	case "a", "always":
		m.Scope = approvalv1.Scope_SCOPE_WORKSPACE
	default:
		return nil, false
	}
	return m, m.GetScope() == approvalv1.Scope_SCOPE_ONCE || len(q.GetRules()) > 0
}

// lines are the lines of standard input; the channel is closed at its end. Nothing can interrupt a read of it: the
// goroutine ends with the line that it waits for, or with the program.
func (a *app) lines(ctx context.Context) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(a.in)
		in.Buffer(make([]byte, 0, 256), maxAnswer)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}
