// Package protocol holds the messages between actors that never leave a process, and the door through which fronts
// reach the actors of a tenant.
//
// What may cross a node is protobuf, in messages/. What stands here carries values that cannot cross: pointers to
// immutable sets, leases on connections, functions. A message is never changed after it was sent. Actor packages do not
// import each other; they meet here.
package protocol
