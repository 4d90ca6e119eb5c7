// Package config reads vak.toml: bytes in, values and problems out. It opens no file, asks no environment and knows no
// clock; the caller says what the file is called and hands over its text.
//
// Reading is strict and forgiving at once. Strict: an unknown key is an error that names its line and the nearest known
// key, a wrong type is an error that names what is expected. Forgiving: servers, hooks, channels and tenants are read
// one by one, so that a bad one never costs another, and a bad setting leaves its default in force.
//
// What restricts fails closed: a channel that cannot be read shows nothing, permissions that cannot be read deny every
// call, and a hook that was (or may have been) declared fail-closed becomes a refusal.
//
// The package also owns the two rules that every reader of server entries shares: the syntax of placeholders (see
// Placeholders) and what looks like a secret that was written out (see MaskURL and MaskArgs).
package config
