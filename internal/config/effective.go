package config

import (
	"slices"
	"strings"
)

// Setting is one effective value with where it comes from.
type Setting struct {
	Key    string `json:"key"`    // as written in TOML, with dots
	Value  string `json:"value"`  // as TOML; secrets that are written out are masked
	Source string `json:"source"` // default, <file>:<line> or flag
}

// sourceDefault is the source of a value that nobody wrote.
const sourceDefault = "default"

// SourceFlag is the source of a value that the command line set.
const SourceFlag = "flag"

// Effective lists every known setting in order of keys. A flag overrides the setting of its key; its source is
// SourceFlag whatever it says.
func (c Config) Effective(flags ...Setting) []Setting {
	all := slices.Clone(c.settings)
	for _, flag := range flags {
		flag.Source = SourceFlag
		if i := slices.IndexFunc(all, func(s Setting) bool { return s.Key == flag.Key }); i >= 0 {
			all[i] = flag
		} else {
			all = append(all, flag)
		}
	}
	slices.SortStableFunc(all, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// Writes reports whether the file itself says what a setting is.
func (c Config) Writes(key string) bool {
	return slices.ContainsFunc(c.settings, func(s Setting) bool { return s.Key == key && s.Source != sourceDefault })
}
