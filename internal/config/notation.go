package config

import (
	"regexp"
	"strings"
)

// The placeholders that this program answers by itself, whatever the environment says.
const (
	WorkspaceFolder = "workspaceFolder" // the absolute path of the workspace
	UserHome        = "userHome"        // the home folder of the user who runs this program
)

// Notation says how another program writes its placeholders. Rewrite turns them into ${NAME} and ${NAME:-default}, so
// that one expander serves all; what it does not know stays as written, is malformed for the expander, and is never sent.
type Notation struct {
	Dollar bool              // $NAME is a placeholder, whatever the letters
	Shout  bool              // $NAME is one where NAME is in capitals
	Braces bool              // {env:NAME} is one
	Inputs map[string]string // defaults of ${input:id}, by id
}

var (
	dollarName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)
	shoutName  = regexp.MustCompile(`^[A-Z][A-Z0-9_]+`)
	bracesEnv  = regexp.MustCompile(`\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// Rewrite returns text with the placeholders of this program.
func (n Notation) Rewrite(text string) string {
	if n.Braces {
		text = bracesEnv.ReplaceAllString(text, "$${$1}")
	}
	var out strings.Builder
	for {
		at := strings.IndexByte(text, '$')
		if at < 0 {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:at])
		rest := text[at+1:]
		if strings.HasPrefix(rest, "{") {
			inner, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				out.WriteString(text[at:])
				return out.String()
			}
			out.WriteString(n.braced(inner))
			text = after
			continue
		}
		name := n.bare(rest)
		if name == "" {
			out.WriteByte('$')
		} else {
			out.WriteString("${" + name + "}")
		}
		text = rest[len(name):]
	}
}

// bare is the name that follows a dollar, if this notation has such.
func (n Notation) bare(rest string) string {
	switch {
	case n.Dollar:
		return dollarName.FindString(rest)
	case n.Shout:
		name := shoutName.FindString(rest)
		if len(dollarName.FindString(rest)) == len(name) {
			return name
		}
	}
	return ""
}

// braced rewrites what stands between ${ and }.
func (n Notation) braced(inner string) string {
	name, def, hasDefault := strings.Cut(inner, ":-")
	switch {
	case inner == "/", inner == "pathSeparator":
		return "/"
	case strings.HasPrefix(name, "env:"):
		name = strings.TrimPrefix(name, "env:")
	case strings.HasPrefix(name, "input:"):
		id := strings.TrimPrefix(name, "input:")
		if given, known := n.Inputs[id]; known && !hasDefault {
			def, hasDefault = given, true
		}
		name = InputName(id)
	case name == "workspaceRoot", name == "workspacePath", name == "cwd":
		name = WorkspaceFolder
	}
	if hasDefault {
		name += ":-" + def
	}
	return "${" + name + "}"
}

// InputName is the name under which the answer to an input of an editor is looked up: ${input:api-key} is
// ${INPUT_API_KEY} here, for a daemon asks nobody.
func InputName(id string) string { return "INPUT_" + EnvironmentName(id) }

// EnvironmentName is a name in the letters of variables: capitals, digits and _, one for each character.
func EnvironmentName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, s)
}
