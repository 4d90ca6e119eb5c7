// Package mcpserver is the pool of a tenant's MCP servers: one pool actor, and one actor a connection.
//
// A server is started by demand alone: a call, or an operator's probe. What a server is to do next is decided by
// lifecycle.Server; the actor here owns the connection, performs what the machine asks for, and lends the connection to
// calls. Calls send their requests themselves, on their own goroutines, for as long as they hold a lease; so no mailbox
// stands between a call and its server, and a slow server delays nobody else.
//
// Sessions share a connection unless the server's isolation says otherwise. A server whose definition changed gets
// another actor; the one before finishes what runs and ends. What demand taught is told to the registry, which publishes
// it.
package mcpserver
