package api

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"
	"github.com/vak-actors/vak-actors/messages/vak/v1/vakv1connect"

	"github.com/vak-actors/vak-actors/internal/approval"
	"github.com/vak-actors/vak-actors/internal/protocol"
)

// MaxRequestBytes bounds one request, uncompressed.
const MaxRequestBytes = 8 << 20

// DefaultTimeout is how long a request may take that brings no deadline of its own.
const DefaultTimeout = 5 * time.Minute

// answerTime is what a request gets beyond the time its call may take, so that the call's own limit speaks first.
const answerTime = 10 * time.Second

// Options are what a handler needs.
type Options struct {
	Door protocol.Door // required

	// Authorize says whether the caller of these request headers may speak for a tenant; its error is the answer to the
	// caller. It runs on the request's goroutine. nil: everybody may.
	Authorize func(tenant string, header http.Header) error
}

// NewHandler serves every service of vak.v1 below /vak.v1.
func NewHandler(o Options) http.Handler {
	with := []connect.HandlerOption{
		connect.WithReadMaxBytes(MaxRequestBytes),
		connect.WithInterceptors(connect.UnaryInterceptorFunc(o.around)),
	}
	s := services{o.Door}
	mux := http.NewServeMux()
	mux.Handle(vakv1connect.NewSessionServiceHandler(s, with...))
	mux.Handle(vakv1connect.NewRegistryServiceHandler(s, with...))
	mux.Handle(vakv1connect.NewServerServiceHandler(s, with...))
	mux.Handle(vakv1connect.NewLedgerServiceHandler(s, with...))
	mux.Handle(vakv1connect.NewApprovalServiceHandler(s, with...))
	return mux
}

// around asks for the caller's right, sets the deadline and translates the error.
func (o Options) around(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if o.Authorize != nil {
			if err := o.Authorize(tenantOf(request.Any()), request.Header()); err != nil {
				return nil, connectError(err)
			}
		}
		if _, given := ctx.Deadline(); !given {
			var done context.CancelFunc
			ctx, done = context.WithTimeout(ctx, timeoutOf(request.Any()))
			defer done()
		}
		response, err := next(ctx, request)
		if err != nil {
			return nil, connectError(err)
		}
		return response, nil
	}
}

// tenantOf is the tenant a message names.
func tenantOf(message any) string {
	if m, ok := message.(interface{ GetTenant() string }); ok && m.GetTenant() != "" {
		return m.GetTenant()
	}
	return protocol.DefaultTenant
}

// timeoutOf is the limit of a request without a deadline: longer than the default where the message itself asks for more, or
// where a call may have to wait for a person first.
func timeoutOf(message any) time.Duration {
	if m, ok := message.(*sessionv1.Dispatch); ok {
		if m.GetTimeoutMs() == 0 {
			return DefaultTimeout + approval.MaxTimeout
		}
		return max(DefaultTimeout, time.Duration(m.GetTimeoutMs())*time.Millisecond+answerTime)
	}
	return DefaultTimeout
}

// ask passes a message through the door.
func ask[R any, P interface {
	*R
	proto.Message
}, C any, M interface {
	*C
	proto.Message
}](ctx context.Context, door protocol.Door, request *connect.Request[C]) (*connect.Response[R], error) {
	result, err := protocol.Call[P](ctx, door, M(request.Msg))
	if err != nil {
		return nil, err
	}
	return connect.NewResponse((*R)(result)), nil
}
