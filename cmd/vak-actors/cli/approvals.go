package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	approvalv1 "github.com/vak-actors/vak-actors/messages/vak/approval/v1"

	"github.com/vak-actors/vak-actors/internal/api"
)

// approvalView is an approval as the program prints it.
type approvalView struct {
	ID             string          `json:"id"`
	Session        string          `json:"session"`
	Turn           string          `json:"turn"`
	Call           string          `json:"call"`
	Channel        string          `json:"channel"`
	Capability     string          `json:"capability"`
	Action         string          `json:"action"`
	Reason         string          `json:"reason"`
	Rule           string          `json:"rule,omitempty"`
	Arguments      json.RawMessage `json:"arguments,omitempty"`
	ArgumentsBytes uint64          `json:"arguments_bytes"`
	InputDigest    string          `json:"input_digest"`
	WrittenDigest  string          `json:"written_digest"`
	Policy         string          `json:"policy"`
	Rules          []string        `json:"rules"` // that an answer for more than once would leave
	Asked          string          `json:"asked"`
	Deadline       string          `json:"deadline"`
}

func approvalOf(a *approvalv1.Approval) approvalView {
	return approvalView{
		a.GetId(), a.GetSessionId(), a.GetTurnId(), a.GetCallId(), a.GetChannel(), a.GetCapability(), a.GetAction(), a.GetReason(),
		a.GetRule(), a.GetArgumentsJson(), a.GetArgumentsBytes(), a.GetInputDigest(), a.GetWrittenDigest(), a.GetPolicy(),
		orEmpty(a.GetRules()), moment(a.GetAskedMs()), moment(a.GetDeadlineMs()),
	}
}

func (a *app) approvals() *cobra.Command {
	return group(&cobra.Command{
		Use:   "approvals",
		Short: "List, show and answer the calls that wait for an approval",
		Long: `A call of an attended session that a rule or the mode asks about waits until somebody answers here, or until
approval_timeout of [permissions] has passed. Each is answered once; an answer that comes late does nothing.`,
		Example: "  vak-actors approvals list\n  vak-actors approvals answer k3jd92ma-1 allow",
	}, a.approvalsList(), a.approvalsShow(), a.approvalsAnswer(), a.approvalsLearned())
}

func (a *app) approvalsList() *cobra.Command {
	var session string
	var block time.Duration
	c := &cobra.Command{
		Use: "list", Short: "List the calls that wait, the longest waiting first",
		Example: "  vak-actors approvals list --json\n  vak-actors approvals list --block 1m",
		Args:    arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.openDaemon(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := waitForApprovals(c.Context(), l, &approvalv1.ListApprovals{Tenant: a.reach.tenant, SessionId: session}, block)
			if err != nil {
				return err
			}
			return a.printApprovals(r.GetApprovals())
		},
	}
	c.Flags().StringVar(&session, "session", "", "only the calls of this session")
	c.Flags().DurationVar(&block, "block", 0, "wait that long for a call that waits")
	return a.reaches(c)
}

// pollTimeMost is what a daemon waits at most in one request.
const pollTimeMost = time.Minute

// waitForApprovals lists what waits, or what comes first within a time.
func waitForApprovals(ctx context.Context, l *link, m *approvalv1.ListApprovals, block time.Duration) (*approvalv1.ListApprovalsResult, error) {
	for end := time.Now().Add(block); ; {
		left := max(0, time.Until(end))
		m.WaitMs = uint32(milliseconds(min(left, pollTimeMost)))
		r, err := api.Call(ctx, l.Approval.ListApprovals, m)
		if err != nil || len(r.GetApprovals()) > 0 || left <= pollTimeMost {
			return r, err
		}
	}
}

func (a *app) printApprovals(all []*approvalv1.Approval) error {
	views := make([]approvalView, len(all))
	for i, one := range all {
		views[i] = approvalOf(one)
	}
	if a.json {
		return printJSON(a.out, map[string]any{"approvals": views})
	}
	rows := [][]string{{"APPROVAL", "SESSION", "ACTION", "REASON", "UNTIL"}}
	for _, v := range views {
		rows = append(rows, []string{v.ID, v.Session, short(v.Action, 60), short(v.Reason, 60), v.Deadline})
	}
	table(a.out, rows)
	return nil
}

func (a *app) approvalsShow() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use: "show APPROVAL", Short: "Show one call that waits, with its arguments", Example: "  vak-actors approvals show k3jd92ma-1",
		Args: arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.openDaemon(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Approval.GetApproval, &approvalv1.GetApproval{Tenant: a.reach.tenant, Id: args[0]})
			if err != nil {
				return err
			}
			v := approvalOf(r.GetApproval())
			if a.json {
				return printJSON(a.out, v)
			}
			a.printApproval(v)
			return nil
		},
	})
}

func (a *app) printApproval(v approvalView) {
	arguments := string(v.Arguments)
	if arguments == "" {
		arguments = fmt.Sprintf("%d bytes, too many to be shown", v.ArgumentsBytes)
	}
	rows := [][]string{
		{"approval", v.ID},
		{"action", v.Action},
		{"reason", v.Reason},
		{"capability", v.Capability},
		{"arguments", arguments},
		{"input digest", v.InputDigest},
	}
	if v.WrittenDigest != v.InputDigest {
		rows = append(rows, []string{"as written", v.WrittenDigest + " (a repair or a hook changed the arguments since)"})
	}
	rows = append(rows,
		[]string{"session", v.Session},
		[]string{"call", v.Call + " of turn " + v.Turn + ", channel " + v.Channel},
		[]string{"until", v.Deadline},
		[]string{"always means", strings.Join(v.Rules, ", ")},
	)
	if len(v.Rules) == 0 {
		rows[len(rows)-1][1] = "it can be allowed once only"
	}
	table(a.out, rows)
}

// answerFlags are the flags of approvals answer.
type answerFlags struct{ always, reason, by, digest string }

func (a *app) approvalsAnswer() *cobra.Command {
	var f answerFlags
	c := &cobra.Command{
		Use:   "answer APPROVAL allow|deny",
		Short: "Answer a call that waits, once",
		Long: `allow lets the one call run. With --always its rules (see approvals show) hold from then on, for the session or for
every session of the workspace: these are kept in learned.toml of the data folder, where they can be edited. Rules of deny
and ask in [permissions] win over them. deny refuses the one call; the model is told the reason.`,
		Example: `  vak-actors approvals answer k3jd92ma-1 allow
  vak-actors approvals answer k3jd92ma-1 allow --always workspace
  vak-actors approvals answer k3jd92ma-1 deny --reason "use the staging project"`,
		Args: arguments(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			m, err := f.message(args)
			if err != nil {
				return err
			}
			m.Tenant = a.reach.tenant
			l, err := a.openDaemon(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Approval.AnswerApproval, m)
			if err != nil {
				return err
			}
			return a.printAnswer(args, r)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.always, "always", "", "allow it from now on: session or workspace")
	flags.StringVar(&f.reason, "reason", "", "why; after a denial the model is told")
	flags.StringVar(&f.by, "by", userName(), "who answers, for the record")
	flags.StringVar(&f.digest, "digest", "", "input digest that the answer is about; another one is refused")
	return a.reaches(c)
}

func (f answerFlags) message(args []string) (*approvalv1.AnswerApproval, error) {
	m := &approvalv1.AnswerApproval{Id: args[0], Reason: f.reason, By: f.by, InputDigest: f.digest, Scope: approvalv1.Scope_SCOPE_ONCE}
	switch args[1] {
	case "allow":
		m.Decision = approvalv1.Decision_DECISION_ALLOW
	case "deny":
		m.Decision = approvalv1.Decision_DECISION_DENY
	default:
		return nil, misused("write allow or deny", "%q is no answer", args[1])
	}
	switch f.always {
	case "":
	case "session":
		m.Scope = approvalv1.Scope_SCOPE_SESSION
	case "workspace":
		m.Scope = approvalv1.Scope_SCOPE_WORKSPACE
	default:
		return nil, misused("write session or workspace", "--always %q is no scope", f.always)
	}
	return m, nil
}

func (a *app) printAnswer(args []string, r *approvalv1.AnswerApprovalResult) error {
	if a.json {
		return printJSON(a.out, map[string]any{"id": args[0], "answer": args[1], "rules": orEmpty(r.GetRules())})
	}
	fmt.Fprintf(a.out, "%s: %s\n", clean(args[0]), args[1])
	for _, rule := range r.GetRules() {
		fmt.Fprintf(a.out, "allowed from now on: %s\n", clean(rule))
	}
	return nil
}

// userName is who runs the program, for the record; empty when the system does not say.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}
