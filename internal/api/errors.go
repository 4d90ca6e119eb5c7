package api

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	commonv1 "github.com/vak-actors/vak-actors/messages/vak/common/v1"

	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/internal/wire"
)

// connectError is err as the wire carries it: the code of its kind, its public text, and a Refusal as detail.
func connectError(err error) *connect.Error {
	public := vakerr.From(err)
	if public.Code == vakerr.Internal {
		public = ended(err, public)
	}
	var code connect.Code
	if err := code.UnmarshalText([]byte(public.Kind().ConnectCode())); err != nil {
		code = connect.CodeInternal
	}
	if public.Code == vakerr.Unauthenticated {
		code = connect.CodeUnauthenticated // 401, as at /mcp: a token can help, other than after a denial
	}
	e := connect.NewError(code, errors.New(public.Reason))
	if detail, err := connect.NewErrorDetail(wire.Refusal(public)); err == nil {
		e.AddDetail(detail)
	}
	return e
}

// ended names the end of a context, which says nothing about itself; another error stays what it is.
func ended(err error, other *vakerr.Error) *vakerr.Error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return vakerr.New(vakerr.DeadlineExceeded, "the request did not end in its time").WithCause(err)
	case errors.Is(err, context.Canceled):
		return vakerr.New(vakerr.Canceled, "the request was given up").WithCause(err)
	}
	return other
}

// refusal is the error that a Connect client got, as the server's code raised it. An error that never was one of ours is
// named by how far the request came; its text stays private.
func refusal(err error, base string) *vakerr.Error {
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return ended(err, vakerr.From(err))
	}
	for _, detail := range failed.Details() {
		message, err := detail.Value()
		if err != nil {
			continue
		}
		if r, ok := message.(*commonv1.Refusal); ok {
			return wire.Error(r)
		}
	}
	return foreign(failed, base).WithCause(err)
}

// foreign names a Connect error without a Refusal: it comes from the network, from net/http or from something at that
// address that is no vak-actors.
func foreign(failed *connect.Error, base string) *vakerr.Error {
	switch failed.Code() {
	case connect.CodeCanceled:
		return vakerr.New(vakerr.Canceled, "the request was given up")
	case connect.CodeDeadlineExceeded:
		return vakerr.New(vakerr.DeadlineExceeded, "%s did not answer in time", base)
	case connect.CodeResourceExhausted:
		return vakerr.New(vakerr.TooLarge, "the message is larger than the %d MiB that one may have", MaxRequestBytes>>20).
			WithRemedy("send less at once")
	case connect.CodeUnavailable:
		return vakerr.New(vakerr.DaemonUnreachable, "no daemon answers at %s", base).
			WithRemedy("start one with `vak-actors serve`, or correct the address")
	case connect.CodeInvalidArgument:
		return vakerr.New(vakerr.InvalidRequest, "%s could not read the request", base).
			WithRemedy("see that this program and the daemon are of one version")
	default:
		return vakerr.New(vakerr.DaemonUnreachable, "what answers at %s does not speak vak.v1", base).
			WithRemedy("correct the address; it is the one that `vak-actors serve` prints, without a path")
	}
}
