package ledger

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of a query.
const (
	MaxQuery      = 1024 // bytes
	MaxQueryTerms = 16
)

// Query matches entries whose values hold every one of its terms, in any case.
type Query struct{ terms []string }

// ParseQuery splits text into terms at white space. It returns invalid_request for no term, too_large or too_many for
// too much.
func ParseQuery(text string) (Query, error) {
	if len(text) > MaxQuery {
		return Query{}, vakerr.New(vakerr.TooLarge, "a query of %d bytes, the limit is %d", len(text), MaxQuery)
	}
	terms := strings.Fields(strings.ToLower(text))
	if len(terms) == 0 {
		return Query{}, vakerr.New(vakerr.InvalidRequest, "a query without a word").WithRemedy("name what to look for")
	}
	if len(terms) > MaxQueryTerms {
		return Query{}, vakerr.New(vakerr.TooMany, "a query of %d words, the limit is %d", len(terms), MaxQueryTerms)
	}
	return Query{terms}, nil
}

// Matches reports whether e holds every term, in its kind or in a value of its body. The names of fields are not looked
// at: they stand in every entry of a kind.
func (q Query) Matches(e Entry) bool {
	if len(q.terms) == 0 {
		return false
	}
	var text strings.Builder
	text.WriteString(string(e.Kind))
	var body any
	if json.Unmarshal(e.Body, &body) == nil {
		writeValues(&text, body)
	}
	haystack := strings.ToLower(text.String())
	return !slices.ContainsFunc(q.terms, func(term string) bool { return !strings.Contains(haystack, term) })
}

func writeValues(text *strings.Builder, value any) {
	switch v := value.(type) {
	case string:
		text.WriteByte('\n') // no term holds a line break, so none matches across two values
		text.WriteString(v)
	case []any:
		for _, item := range v {
			writeValues(text, item)
		}
	case map[string]any:
		for _, item := range v {
			writeValues(text, item)
		}
	}
}
