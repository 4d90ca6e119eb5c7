// Package gateway is the MCP front: it lets any MCP client, over Streamable HTTP or stdio, use what a tenant's sessions
// offer, and speaks to actors through a protocol.Door only.
//
// # What it decides
//
// What belongs to the protocol: which versions are spoken, which message is answered how, which request belongs to which
// connection, when a client is told that its list moved. What a client may see and call, it does not decide: each
// tools/list and each tools/call is asked of the session behind it, against the epoch in force then, so that a client
// which never lists again is served right, too.
//
// # Parts
//
// A session is one MCP connection, whatever carries it. Handler carries sessions over HTTP, ServeStdio one over pipes.
// Bridge is for a process that only carries lines between a client's pipes and the Handler of a daemon.
//
// # Invariants
//
//   - Ids and progress tokens of a client mean something within its own connection only.
//   - An answer goes to the stream its request came from; nothing about a call follows the answer to it.
//   - Definitions of tools and results pass as the bytes the session gave, on one line.
//   - A list_changed notification is sent only while no call is in flight, and only when the digest of the list is
//     another than the one this client last listed or was last told of.
//   - A client that is gone has not cancelled anything (MCP, transports); a call ends by its own limits, by
//     notifications/cancelled, or with the MCP session.
//   - Everything a client can make grow is bounded: bodies, frames, sessions, calls in flight, events kept for it.
//
// # Ownership
//
// A session owns its calls and its watch over the list; close waits for both. Handler owns its sessions and the sweep over
// idle ones; Handler.Close waits for all. Sources: modelcontextprotocol.io, specification 2025-11-25, basic/lifecycle,
// basic/transports, server/tools, server/resources, server/prompts, client/sampling, client/elicitation, client/roots.
package gateway
