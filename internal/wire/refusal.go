// Package wire translates between the domain's values and the protobuf messages of messages/. Every translation is
// total: what comes from outside is checked and bounded here, so that actors see valid values only.
package wire

import (
	"time"

	commonv1 "github.com/vak-actors/vak-actors/messages/vak/common/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxRetryAfter bounds a wait that comes from outside; a longer one is as good as none.
const maxRetryAfter = 24 * time.Hour

// Refusal is the message form of an error's public face; nil for nil. Foreign text stays private.
func Refusal(err error) *commonv1.Refusal {
	e := vakerr.From(err)
	if e == nil {
		return nil
	}
	return &commonv1.Refusal{Code: string(e.Code), Reason: e.Reason, Remedy: e.Remedy, RetryAfterMs: e.RetryAfter.Milliseconds()}
}

// Error is the error that r describes; nil for nil. A code this build does not know becomes internal_error and keeps
// its reason.
func Error(r *commonv1.Refusal) *vakerr.Error {
	if r == nil {
		return nil
	}
	code := vakerr.Code(r.GetCode())
	if !code.Known() {
		code = vakerr.Internal
	}
	e := vakerr.New(code, "%s", r.GetReason())
	if r.GetRemedy() != "" {
		e = e.WithRemedy("%s", r.GetRemedy())
	}
	if ms := min(r.GetRetryAfterMs(), maxRetryAfter.Milliseconds()); ms > 0 {
		e = e.WithRetryAfter(time.Duration(ms) * time.Millisecond)
	}
	return e
}

// Delta is the message form of d; nil when nothing differs.
func Delta(d capability.Delta) *commonv1.Delta {
	if d.Empty() {
		return nil
	}
	return &commonv1.Delta{Added: ids(d.Added), Updated: ids(d.Updated), Removed: ids(d.Removed)}
}

func ids(list []capability.ID) []string {
	texts := make([]string, len(list))
	for i, id := range list {
		texts[i] = id.String()
	}
	return texts
}

// Problems is the message form of all.
func Problems(all []capability.Problem) []*commonv1.Problem {
	out := make([]*commonv1.Problem, len(all))
	for i, p := range all {
		out[i] = &commonv1.Problem{
			Severity: string(p.Severity), Code: p.Code, Path: p.Path, Line: int32(p.Line), Message: p.Message, Hint: p.Hint,
		}
	}
	return out
}
