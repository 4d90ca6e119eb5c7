// Package declare reads a workspace and says what it declares: skills, slash commands, MCP servers and hooks, each as a
// capability.Declaration, beside the problems of files that could not be taken, or not as written.
//
// It reads through an fs.FS and nothing else: it knows no operating system, no environment, no clock and starts nothing.
// The caller hands in a file system that ends at the workspace (os.Root.FS does), so that links cannot lead out of it.
//
// Invariants:
//   - One bad file never changes what another declares. It costs itself, with a problem that names path, line and cure.
//   - What restricts fails closed: metadata that is present and unreadable is an error, never "no metadata".
//   - The result is a function of the files alone, not of the order in which a folder lists them. Where two declare one
//     name the first of Sources wins and the other stays visible as shadowed.
//   - Nothing is expanded: placeholders stay as written, only Server.SecretDigest follows their values.
//
// A Scanner keeps what it read. A quiet pass asks every file for size, time and inode and reads none; one that changed
// less than two seconds before it was read is read again, because a second change within the clock's grain would not
// show. A Scanner belongs to one goroutine; the Results it returns are never changed afterwards.
package declare
