package pins

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// changes lists the parts of two JSON objects that differ, in order of their names. The definition of a tool holds its other
// parts once more and is left out where they say it all.
func changes(before, after json.RawMessage) []Change {
	a, b := object(before), object(after)
	names := map[string]bool{}
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	var all []Change
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(a[name], b[name]) {
			all = append(all, Change{name, readable(a[name]), readable(b[name])})
		}
	}
	if len(all) > 1 {
		all = slices.DeleteFunc(all, func(c Change) bool { return c.Part == "definition" })
	}
	return all
}

func object(text json.RawMessage) map[string]json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		return map[string]json.RawMessage{"content": text}
	}
	return all
}

// maxShown bounds one side of a change as people see it, in bytes.
const maxShown = 16 << 10

// readable is a value as people read it: a text as it is, anything else as indented JSON.
func readable(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		var out bytes.Buffer
		if json.Indent(&out, raw, "", "  ") == nil {
			text = out.String()
		}
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

// parts names what differs.
func parts(all []Change) string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Part
	}
	return strings.Join(names, ", ")
}
