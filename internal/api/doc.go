// Package api is the Connect front: the services of vak.v1 over a protocol.Door, as gRPC, gRPC-Web and Connect JSON on one
// handler, and the client that speaks them back.
//
// It decides nothing. A handler passes its message through the door and the result back. Around every call stand the
// same three things: the caller's right to the tenant it names, a deadline, and the translation of errors: a vakerr.Error
// becomes a Connect error of its kind's code with a vak.common.v1.Refusal as detail, and the client turns that into the
// same vakerr.Error again. Whoever calls through a Client cannot tell whether a daemon or his own process answers.
//
// The package owns no goroutine and no listener; host serves the handler.
package api
