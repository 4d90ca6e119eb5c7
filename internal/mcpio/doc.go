// Package mcpio is the client side of MCP: one Conn is one connection to one server, over stdio or Streamable HTTP.
//
// What it decides: how a server is started and greeted, which bytes of its output count as frames, how much of anything is
// taken from it, what of a catalog is usable, and what a failure is called. What it does not: when to connect, whether to
// connect again, who may call what. It keeps no state beyond one connection.
//
// Invariants
//   - JSON is passed through raw. Results, params of notifications and tools are never decoded into typed values and back,
//     which would lose what the types do not know.
//   - One bad tool, page, line or frame costs itself and nothing else. What was repaired or left out is reported.
//   - Everything a server sends has a bound (Limits), and everything sent to it has a deadline. A server that passes a bound
//     of the connection fails that connection; one that passes a bound of a call fails that call.
//   - A death is noticed at once and fails the calls in flight: vakerr.OutcomeUnknown for a tool call that may have run,
//     vakerr.ServerDied for everything that has no effect or was never sent.
//   - No text of a server but the results of its calls leaves this package with the value of a secret of its Spec in it; see
//     Redactor. A result passes as it came: short values are ordinary words, and replacing them would falsify answers.
//   - Nothing calls back into a Conn from its read loop: Handlers only post.
//
// Below a stdio connection lies childproc, which owns the process; between them runs mcp-go's transport on pipes of ours:
// frameReader bounds and sorts what comes in, pipeWriter keeps a server that does not read from blocking a caller. Below an
// HTTP connection lies mcp-go's transport on a http.RoundTripper of ours, which sees every status and bounds every body.
//
// Ownership: whoever calls Dial closes the Conn, also after Done. Close returns when the process is reaped and every
// goroutine of the connection has ended. Errors are *vakerr.Error.
//
// Source: Model Context Protocol, revisions 2024-11-05 to 2025-11-25 (initialize) and 2026-07-28 (server/discover).
package mcpio
