package protocol

import (
	"time"

	"github.com/vak-actors/vak-actors/internal/approval"
)

// AskApproval puts a question before people. Sender: a call. Receiver: the approver. Reply: approval.Settlement, or an
// error when the question is not taken up. It is withdrawn with WithdrawApproval when the call is given up.
type AskApproval struct {
	Request  approval.Request
	Deadline time.Time // an answer after it does nothing

	// Judge says what the policy in force thinks of the call now. It is quick, and safe to call from any goroutine.
	Judge func() approval.Verdict
}

// WithdrawApproval says that a call does not wait for its answer any more. Sender: the call that asked, and so behind its
// AskApproval. Receiver: the approver. No reply; losing it costs a place until the deadline.
type WithdrawApproval struct{ ID string }

// JudgeApprovals asks to judge what waits again, since an answer allows more than the call it was about. Sender: a call.
// Receiver: the approver. No reply; losing it costs a question too many.
type JudgeApprovals struct{}

// ReleaseWatchers answers those who wait for news of approvals: their front takes no more requests. Sender: host. Receiver:
// the approver. No reply.
type ReleaseWatchers struct{}

// PolicyChanged says that another policy is in force at every gate. Sender: the registry. Receivers: the approver, which
// judges what waits again, and sessions. No reply.
type PolicyChanged struct {
	Stricter bool // the mode is: calls that it does not allow are cancelled while they run
}

// ControlMessage implements actorkit.Control.
func (*PolicyChanged) ControlMessage() {}
