// Package plugin reads what a plugin says of itself, and decides about it: which manifest of a folder counts, what the
// plugin brings, whether the operator agreed to exactly that, and in which state it is.
//
// It reads the packages of several programs: our own vak-plugin.json, Agent Plugins 1.0, the plugins of Claude Code, Codex
// and Cursor, Gemini extensions, server.json of the MCP registry, manifest.json of MCP bundles, and folders without any
// manifest. Of a folder that holds several manifests one is read, in the order of Candidates; the others are ignored and
// never merged. It reads no skill, command, hook or server itself: package declare does, where a Layout says.
//
// It is pure: it reads through an fs.FS that ends at the plugin, and starts, fetches and expands nothing.
//
// Invariants:
//   - What a manifest asks for and this program does not know as a component makes the plugin incompatible; other unknown
//     keys are warnings. Known components that this program has no use for are listed as unsupported.
//   - A path that is absolute or holds .. refuses the plugin. A component that is broken costs itself alone.
//   - A consent names the digest of the content, the scope and the digest of what the plugin brings; when one of them
//     differs, there is no consent.
//   - Values of options come from the operator, never from the plugin or the workspace.
package plugin
