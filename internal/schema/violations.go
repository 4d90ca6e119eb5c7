package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of what an error says.
const (
	maxViolations = 20
	maxName       = 64 // characters of a field's name
	maxWanted     = 12 // members of an enum
)

// CheckArguments checks the arguments of a call to the named tool. They must be one JSON object; none at all counts as
// the empty one. The error names every wrong field.
func (s *Schema) CheckArguments(tool string, raw json.RawMessage) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	v, err := Read(raw)
	if err != nil {
		return err
	}
	return s.Check(tool, v)
}

// Check is CheckArguments for arguments that were read already.
func (s *Schema) Check(tool string, v Value) error {
	wrong, err := s.violations(v)
	if err != nil {
		return err
	}
	if len(wrong) == 0 {
		return nil
	}
	return vakerr.New(vakerr.InvalidArguments, "the arguments of %s do not fit its input schema: %s", tool, strings.Join(wrong, "; ")).
		WithRemedy("correct the fields named and call again")
}

// Violations lists what is wrong with a value, one entry a field, sorted; nil for a valid one. The error is typed and
// means that the value could not be checked at all.
func (s *Schema) Violations(raw json.RawMessage) ([]string, error) {
	v, err := Read(raw)
	if err != nil {
		return nil, err
	}
	return s.violations(v)
}

func (s *Schema) violations(v Value) ([]string, error) {
	if _, ok := v.value.(map[string]any); !ok {
		return []string{"a JSON object is expected"}, nil
	}
	finding, err := s.check(v.value, v.values)
	if err != nil {
		return nil, refused(err)
	}
	return describe(finding), nil
}

func refused(err error) error {
	code := vakerr.InvalidArguments
	if errors.Is(err, errCostly) || errors.Is(err, errDepth) {
		code = vakerr.TooLarge
	}
	return vakerr.New(code, "the value cannot be checked: %s", err.Error()).WithRemedy("send a simpler JSON object")
}

func describe(finding *jsonschema.ValidationError) []string {
	if finding == nil {
		return nil
	}
	wrong := collect(nil, finding)
	if len(wrong) == 0 {
		return []string{"it does not fit"}
	}
	slices.Sort(wrong)
	wrong = slices.Compact(wrong)
	if more := len(wrong) - maxViolations; more > 0 {
		wrong = append(wrong[:maxViolations], fmt.Sprintf("and %d more", more))
	}
	return wrong
}

// collect walks to the leaves; alternatives are one entry, because no single one of their leaves is the fault.
func collect(wrong []string, e *jsonschema.ValidationError) []string {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return append(wrong, field(e)+"fits none of the allowed forms"+alternatives(e))
	case *kind.OneOf:
		if k.Subschemas == nil {
			return append(wrong, field(e)+"fits none of the allowed forms"+alternatives(e))
		}
		return append(wrong, field(e)+"fits more than one of the forms of which exactly one is allowed")
	case *kind.Contains, *kind.MinContains:
		return append(wrong, field(e)+"lacks a required item")
	}
	if len(e.Causes) == 0 {
		return append(wrong, field(e)+wanted(e.ErrorKind))
	}
	for _, cause := range e.Causes {
		wrong = collect(wrong, cause)
	}
	return wrong
}

func alternatives(e *jsonschema.ValidationError) string {
	var forms []string
	for _, cause := range e.Causes {
		forms = append(forms, strings.Join(collect(nil, cause), ", "))
	}
	slices.Sort(forms)
	forms = slices.Compact(forms)
	if len(forms) == 0 || len(forms) > 4 {
		return ""
	}
	text := strings.Join(forms, "; or ")
	if len(text) > 600 {
		return ""
	}
	return " (" + text + ")"
}

// field is the path of the value that is wrong, followed by ": "; empty for the whole.
func field(e *jsonschema.ValidationError) string {
	if len(e.InstanceLocation) == 0 {
		return ""
	}
	var path strings.Builder
	for i, token := range e.InstanceLocation {
		if i > 0 {
			path.WriteByte('.')
		}
		path.WriteString(name(token))
	}
	return path.String() + ": "
}

// name prints a field's name: it was chosen by the caller, so it is cut and quoted when it is no plain word.
func name(s string) string {
	cut := []rune(strings.ToValidUTF8(s, "?"))
	if len(cut) > maxName {
		cut = append(cut[:maxName], '…')
	}
	plain := strings.IndexFunc(string(cut), func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
	if plain && len(cut) > 0 {
		return string(cut)
	}
	return strconv.Quote(string(cut))
}

func names(all []string) string {
	all = slices.Sorted(slices.Values(all))
	cut := len(all) > maxWanted
	if cut {
		all = all[:maxWanted]
	}
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = name(s)
	}
	if cut {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}

// wanted says what the schema asks for. It speaks of the schema's side only, never of the value.
func wanted(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Required:
		return "required and missing: " + names(k.Missing)
	case *kind.AdditionalProperties:
		return "not a known field: " + names(k.Properties)
	case *kind.Dependency:
		return "with " + name(k.Prop) + ", required and missing: " + names(k.Missing)
	case *kind.DependentRequired:
		return "with " + name(k.Prop) + ", required and missing: " + names(k.Missing)
	case *kind.Type:
		return "must be of type " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "must be one of " + constants(k.Want)
	case *kind.Const:
		return "must be " + constants([]any{k.Want})
	case *kind.Format:
		return "must be a valid " + name(k.Want)
	case *kind.Pattern:
		return "must match " + name(k.Want)
	case *kind.PropertyNames:
		return "field name not allowed: " + name(k.Property)
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.UniqueItems:
		return "items must differ from each other"
	}
	if text := bounds(k); text != "" {
		return text
	}
	return "does not fit"
}

func bounds(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinProperties:
		return fmt.Sprintf("needs at least %d fields", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("may have at most %d fields", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("needs at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("may have at most %d items", k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("needs at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("may have at most %d characters", k.Want)
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	case *kind.ExclusiveMinimum:
		return "must be greater than " + k.Want.RatString()
	case *kind.ExclusiveMaximum:
		return "must be less than " + k.Want.RatString()
	case *kind.MultipleOf:
		return "must be a multiple of " + k.Want.RatString()
	}
	return ""
}

func constants(values []any) string {
	texts := make([]string, 0, min(len(values), maxWanted)+1)
	for i, v := range values {
		if i == maxWanted {
			texts = append(texts, "…")
			break
		}
		text, err := json.Marshal(v)
		if err != nil {
			continue
		}
		if len(text) > maxName {
			text = append(text[:maxName:maxName], "…"...)
		}
		texts = append(texts, strings.ToValidUTF8(string(text), "?"))
	}
	return strings.Join(texts, ", ")
}
