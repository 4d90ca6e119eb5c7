package corpus

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/declare"
)

func TestSkills(t *testing.T) {
	dir := corpusDir(t)
	if dir == "" {
		return
	}
	c := newTally()
	for _, group := range rows(t, dir, "skills") {
		r := group[0]
		folder := path.Base(path.Dir(r.file))
		c.count(r, document(r, scan(t, dir, r.file, path.Join("skills", folder, path.Base(r.file))), r.expect))
	}
	c.exact(t, "skills")
}

func TestCommands(t *testing.T) {
	dir := corpusDir(t)
	if dir == "" {
		return
	}
	c := newTally()
	for _, group := range rows(t, dir, "commands") {
		r := group[0]
		want := r.expect
		if r.detail.NS != "" {
			want = "command:" + strings.ReplaceAll(r.detail.NS, "/", ":") + ":" + strings.TrimPrefix(r.expect, "command:")
		}
		c.count(r, document(r, scan(t, dir, r.file, path.Join(commandsFolder(r.file), r.detail.NS, path.Base(r.file))), want))
	}
	c.exact(t, "commands")
}

// commandsFolder is where a workspace has commands of that dialect.
func commandsFolder(file string) string {
	switch {
	case strings.HasSuffix(file, ".toml"):
		return ".gemini/commands"
	case strings.HasSuffix(file, ".prompt.md"):
		return ".github/prompts"
	}
	return "commands"
}

// decided is what this program does where two documented programs, or two parsers, differ; by the beginning of a row's
// reason. docs/formats.md tells users.
var decided = []struct {
	reason   string
	declared bool
	code     string // of the problem that says so
}{
	{"metadata unreadable, body usable", false, "frontmatter_yaml"},
	{"duplicate key", false, "frontmatter_duplicate"},
	{"YAML parsers disagree: could not determine a constructor for the tag", true, "frontmatter_repaired"},
	{"YAML parsers disagree: expected <block end>, but found ':'", false, "frontmatter_yaml"},
	{"metadata not at the start: text-before", true, "frontmatter_misplaced"},
	{"file is called SKILL.MD", false, "skill_file_name"},
	{"no description", true, "skill_description"},
	{"blank lines before ---", false, "frontmatter_misplaced"},
}

func decision(r row, got declare.Result) error {
	for _, d := range decided {
		if !strings.HasPrefix(r.reason, d.reason) {
			continue
		}
		said := slices.ContainsFunc(got.Problems, func(p capability.Problem) bool { return p.Code == d.code })
		if declared := len(got.Declarations) == 1; declared != d.declared || !said {
			return fmt.Errorf("declared %t, problems %v", declared, got.Problems)
		}
		return nil
	}
	return fmt.Errorf("nothing is decided for it: declared %d, problems %v", len(got.Declarations), got.Problems)
}

// document compares a skill or command with its row.
func document(r row, got declare.Result, id string) error {
	if err := strictly(r, got); err != nil {
		return err
	}
	failed := errorsOf(got)
	switch {
	case r.verdict == "policy":
		return decision(r, got)
	case r.verdict == "error":
		if len(got.Declarations) != 0 || len(failed) == 0 {
			return fmt.Errorf("declared %d, errors %v", len(got.Declarations), failed)
		}
		return nil
	case len(got.Declarations) != 1 || len(failed) > 0:
		return fmt.Errorf("declared %d, errors %v", len(got.Declarations), failed)
	}
	d := got.Declarations[0]
	var description string
	var body []byte
	var invocation capability.Invocation
	switch config := d.Config.(type) {
	case *capability.Skill:
		description, body, invocation = config.Description, config.Body, config.Invocation
	case *capability.Command:
		description, body, invocation = config.Description, config.Body, config.Invocation
	}
	switch {
	case d.ID.String() != id:
		return fmt.Errorf("declared %s", d.ID)
	case r.detail.DescSHA != "" && sha(strings.TrimSpace(description)) != r.detail.DescSHA:
		return fmt.Errorf("description %q", description)
	case r.detail.BodySHA != "" && sha(strings.TrimSpace(string(body))) != r.detail.BodySHA:
		return fmt.Errorf("body of %d bytes differs", len(body))
	case strings.Contains(r.reason, "repaired: ") != slices.ContainsFunc(got.Problems, func(p capability.Problem) bool { return p.Code == "frontmatter_repaired" }):
		return fmt.Errorf("repaired or not: %v", got.Problems)
	}
	return invoked(r.detail, invocation)
}

// invoked compares what a document says of its invocation.
func invoked(want detail, got capability.Invocation) error {
	switch {
	case want.ArgumentHint != "" && got.ArgumentHint != want.ArgumentHint:
		return fmt.Errorf("argument hint %q", got.ArgumentHint)
	case want.Model != got.Model:
		return fmt.Errorf("model %q", got.Model)
	case want.Invocable != nil && got.DisableUserInvocation == *want.Invocable:
		return fmt.Errorf("user invocable %t", !got.DisableUserInvocation)
	case want.NotByModel && !got.DisableModelInvocation:
		return fmt.Errorf("a model may load it")
	case want.AllowedTools == nil:
		return nil
	}
	var list []string
	if json.Unmarshal(want.AllowedTools, &list) != nil {
		list = make([]string, 1)
		if err := json.Unmarshal(want.AllowedTools, &list[0]); err != nil {
			return err
		}
	}
	if letters(list) != letters(got.AllowedTools) {
		return fmt.Errorf("allowed tools %q", got.AllowedTools)
	}
	return nil
}

// letters is a list without what separates its parts.
func letters(list []string) string {
	return strings.NewReplacer(" ", "", ",", "").Replace(strings.Join(list, ""))
}

// strictly holds check --strict to what a strict reader says of the format: it refuses what cannot be taken as it stands,
// and finds no fault with the format of anything else.
func strictly(r row, got declare.Result) error {
	switch refused := slices.ContainsFunc(got.Problems, offFormat); {
	case r.strict == "error" && !refused, r.strict == "ok" && refused && r.verdict == "ok":
		return fmt.Errorf("a strict reader says %s, problems %v", r.strict, got.Problems)
	}
	return nil
}

// offFormat tells problems of the format from those of style and taste, which a parser does not know.
func offFormat(p capability.Problem) bool {
	switch p.Code {
	case "frontmatter_key", "frontmatter_type", "frontmatter_unsupported":
		return false
	}
	return p.Severity == capability.SeverityError || strings.HasPrefix(p.Code, "frontmatter_")
}
