package approval

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/approval"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/protocol"
)

// Caller is how calls reach the approver, from their own goroutines.
type Caller struct {
	approver *protocol.Address
	run      string
	asked    atomic.Uint64
}

var _ dispatch.Approver = (*Caller)(nil)

// NewCaller returns the way to an approver of that run.
func NewCaller(approver *protocol.Address, run string) *Caller {
	return &Caller{approver: approver, run: run}
}

// NewID implements dispatch.Approver.
func (r *Caller) NewID() string { return approval.ID(r.run, r.asked.Add(1)) }

// Judge implements dispatch.Approver.
func (r *Caller) Judge() { _ = r.approver.Ref().Tell(protocol.JudgeApprovals{}) }

// Approve implements dispatch.Approver.
func (r *Caller) Approve(ctx context.Context, q approval.Request, deadline time.Time, judge func() approval.Verdict) (approval.Settlement, error) {
	s, err := actorkit.Ask[approval.Settlement](ctx, r.approver.Ref(), &protocol.AskApproval{Request: q, Deadline: deadline, Judge: judge})
	if ctx.Err() != nil {
		_ = r.approver.Ref().Tell(&protocol.WithdrawApproval{ID: q.ID})
	}
	return s, err
}
