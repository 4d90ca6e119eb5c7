package api

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/vak-actors/vak-actors/messages/vak/v1/vakv1connect"
)

// Client speaks vak.v1. Its methods' errors are *vakerr.Error, the same that the handler's door returned. It is safe for
// concurrent use.
type Client struct {
	Session  vakv1connect.SessionServiceClient
	Registry vakv1connect.RegistryServiceClient
	Server   vakv1connect.ServerServiceClient
	Ledger   vakv1connect.LedgerServiceClient
	Approval vakv1connect.ApprovalServiceClient
}

// ClientOptions tell a client how to reach its daemon.
type ClientOptions struct {
	HTTP  connect.HTTPClient // default http.DefaultClient; NewMemory for a handler of this process
	Base  string             // scheme and host, for instance http://127.0.0.1:7717; required
	Token string             // bearer token; empty: none is sent
}

// NewClient returns a client. It does not connect before the first call.
func NewClient(o ClientOptions) *Client {
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	with := []connect.ClientOption{connect.WithInterceptors(connect.UnaryInterceptorFunc(o.around))}
	return &Client{
		Session:  vakv1connect.NewSessionServiceClient(o.HTTP, o.Base, with...),
		Registry: vakv1connect.NewRegistryServiceClient(o.HTTP, o.Base, with...),
		Server:   vakv1connect.NewServerServiceClient(o.HTTP, o.Base, with...),
		Ledger:   vakv1connect.NewLedgerServiceClient(o.HTTP, o.Base, with...),
		Approval: vakv1connect.NewApprovalServiceClient(o.HTTP, o.Base, with...),
	}
}

func (o ClientOptions) around(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if o.Token != "" {
			request.Header().Set("Authorization", "Bearer "+o.Token)
		}
		response, err := next(ctx, request)
		if err != nil {
			return nil, refusal(err, o.Base)
		}
		return response, nil
	}
}

// Call makes one call without headers, for instance Call(ctx, client.Registry.Find, &registryv1.Find{...}).
func Call[C, R any](ctx context.Context, method func(context.Context, *connect.Request[C]) (*connect.Response[R], error), message *C) (*R, error) {
	response, err := method(ctx, connect.NewRequest(message))
	if err != nil {
		return nil, err
	}
	return response.Msg, nil
}
