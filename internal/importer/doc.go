// Package importer brings the MCP servers of another program's user-level files into a vak.toml that this program owns.
//
// It decides what can be taken and how it is written; it starts nothing and asks nobody. Invariants:
//   - Files of other programs are read and never written.
//   - What stands in vak.toml already stays byte for byte: entries are put at its end, a name that is taken is left alone.
//   - A secret that is written out there is not copied: it goes into secrets.env of the data folder, with a placeholder
//     in its place.
//   - Approvals are shown as proposals and never taken over.
//   - What was written can be taken back byte for byte, as long as nobody changed the files since.
package importer
