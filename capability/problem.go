package capability

import (
	"cmp"
	"slices"
)

// Severity orders problems.
type Severity string

// The severities. An error means that something was left out; a warning that it was taken, but not as written.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem is one finding of a reader. One bad file never costs another, so problems travel beside the declarations.
type Problem struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	Path     string   `json:"path"`           // relative to the workspace; of another root with its prefix: ~/...
	Line     int      `json:"line,omitempty"` // 1-based; 0: the whole file
	Message  string   `json:"message"`        // what is wrong
	Hint     string   `json:"hint,omitempty"` // what to do

	// Declares is what the file would declare if it could be read; zero where nobody can say.
	Declares ID `json:"declares,omitzero"`
}

// Broken finds what somebody may ask for by name and no file declares because it cannot be read: of each the first error.
func Broken(problems []Problem, declared []Declaration) map[ID]Problem {
	var all map[ID]Problem
	for _, p := range problems {
		if _, known := all[p.Declares]; p.Severity != SeverityError || p.Declares == (ID{}) || known {
			continue
		}
		if slices.ContainsFunc(declared, func(d Declaration) bool { return d.ID == p.Declares }) {
			continue
		}
		if all == nil {
			all = make(map[ID]Problem)
		}
		all[p.Declares] = p
	}
	return all
}

// SortProblems orders problems by path, line and code, so that two equal readings print alike.
func SortProblems(all []Problem) {
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message))
	})
}

// Shadow is a declaration that is not used because another of its name, or the same file by another path, comes first.
type Shadow struct {
	ID     ID     `json:"id"`
	Source string `json:"source"` // where it stands
	By     string `json:"by"`     // source of the one that is used
}
