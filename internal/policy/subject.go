package policy

import "encoding/json"

// Subject is one thing a call acts on.
type Subject struct {
	Kind SubjectKind
	Text string
}

// Subject names in arguments, by what they hold. They are words of the field, not names of tools.
var subjectProperties = []struct {
	kind  SubjectKind
	names []string
}{
	{SubjectPath, []string{"path", "file_path", "filePath"}},
	{SubjectURL, []string{"url"}},
	{SubjectCommand, []string{"command"}},
}

// subjectKinds lists the kinds of subject a call with that schema can name; SubjectNone alone where it names none.
func subjectKinds(schema json.RawMessage) []SubjectKind {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(schema) > 0 && json.Unmarshal(schema, &object) != nil {
		return []SubjectKind{SubjectNone}
	}
	var kinds []SubjectKind
	for _, s := range subjectProperties {
		for _, n := range s.names {
			if _, ok := object.Properties[n]; ok {
				kinds = append(kinds, s.kind)
				break
			}
		}
	}
	if kinds == nil {
		kinds = []SubjectKind{SubjectNone}
	}
	return kinds
}

// Subjects reads what a call of a tool acts on from its arguments, one of each name that is there; none is a valid
// answer. A path is returned as the model wrote it; the caller makes it relative to the workspace before it asks the
// engine.
func Subjects(arguments json.RawMessage) []Subject {
	var object map[string]json.RawMessage
	if json.Unmarshal(arguments, &object) != nil {
		return nil
	}
	var all []Subject
	for _, s := range subjectProperties {
		for _, n := range s.names {
			var text string
			if raw, ok := object[n]; ok && json.Unmarshal(raw, &text) == nil && text != "" {
				all = append(all, Subject{s.kind, text})
			}
		}
	}
	return all
}
