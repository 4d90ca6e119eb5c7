package config

import (
	"regexp"
	"strings"
)

// Placeholder is a ${NAME} or ${NAME:-default} in a text.
type Placeholder struct {
	Name       string // what stands between the braces, without the default; the rest of the text where they are not closed
	Default    string
	HasDefault bool
	Malformed  bool // not a name of this program, for instance ${command:x}, or a default with a placeholder; it never resolves
	Open       bool // it is never closed
}

var placeholderName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Placeholders lists the placeholders of text in order. A ${ that is never closed is a malformed one.
func Placeholders(text string) []Placeholder {
	var all []Placeholder
	walkPlaceholders(text, func(string) {}, func(p Placeholder) { all = append(all, p) })
	return all
}

// Expand replaces every placeholder by what lookup finds, or by its default. missing names those that have neither, in
// order; a text with a missing one must not be used. What was put in is not expanded again.
func Expand(text string, lookup func(name string) (string, bool)) (expanded string, missing []string) {
	var out strings.Builder
	walkPlaceholders(text, func(literal string) { out.WriteString(literal) }, func(p Placeholder) {
		value, found := "", false
		if !p.Malformed && lookup != nil {
			value, found = lookup(p.Name)
		}
		switch {
		case found:
			out.WriteString(value)
		case p.HasDefault && !p.Malformed:
			out.WriteString(p.Default)
		default:
			missing = append(missing, p.Name)
		}
	})
	return out.String(), missing
}

// walkPlaceholders calls literal and placeholder for the parts of text, in order.
func walkPlaceholders(text string, literal func(string), placeholder func(Placeholder)) {
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			literal(text)
			return
		}
		literal(text[:start])
		inner, rest, closed := strings.Cut(text[start+2:], "}")
		var p Placeholder
		p.Name, p.Default, p.HasDefault = strings.Cut(inner, ":-")
		p.Open = !closed
		p.Malformed = p.Open || !placeholderName.MatchString(p.Name) || strings.Contains(p.Default, "${")
		placeholder(p)
		text = rest
	}
}

// withoutPlaceholders puts a letter in place of each, so that the rest can be read as an address.
func withoutPlaceholders(text string) string {
	var out strings.Builder
	walkPlaceholders(text, func(literal string) { out.WriteString(literal) }, func(Placeholder) { out.WriteByte('1') })
	return out.String()
}
