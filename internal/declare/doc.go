// Package declare reads a root (a workspace, a user's folder, an installed plugin) and says what it declares: skills, slash
// commands, MCP servers and hooks, each as a capability.Declaration, beside the problems of files that could not be taken, or
// not as written. A Layout says which files of a root are read; Merge joins roots by precedence.
//
// It reads through an fs.FS and nothing else: it knows no operating system, no environment, no clock and starts nothing.
// The caller hands in a file system that ends at the root (os.Root.FS does), so that links cannot lead out of it.
//
// Invariants:
//   - One bad file never changes what another declares. It costs itself, with a problem that names path, line and cure.
//   - What restricts fails closed: metadata that is present and unreadable is an error, never "no metadata".
//   - The result is a function of the files alone, not of the order in which a folder lists them. Where two declare one
//     name the first of Sources wins and the other stays visible as shadowed.
//   - Only what the Layout names is opened.
//   - A document that breaks leaves its last good version in force, unless the broken one was to be narrower.
//   - Nothing is expanded: placeholders stay as written, only Server.SecretDigest follows their values.
//
// A Scanner keeps what it read. A quiet pass asks every file for size, time and inode and reads none; one that changed
// less than two seconds before it was read is read again, because a second change within the clock's grain would not
// show. A Scanner belongs to one goroutine; the Results it returns are never changed afterwards.
package declare
