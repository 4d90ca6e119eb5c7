package turn

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// distinctKeys refuses an object that names a property twice, also where only case differs. Readers of JSON disagree on
// which of the two counts, so what policy judged could be another value than what the tool then uses. The object is valid
// JSON; only the keys of its own properties are looked at.
func distinctKeys(name string, object json.RawMessage) *vakerr.Error {
	seen := make(map[string]struct{}, 8)
	depth, isKey := 0, false
	for i := 0; i < len(object); i++ {
		switch object[i] {
		case '{', '[':
			depth++
			isKey = depth == 1
		case '}', ']':
			depth--
		case ',':
			isKey = depth == 1
		case '"':
			end := stringEnd(object, i)
			if isKey {
				key := unquoted(object[i : end+1])
				folded := strings.Map(foldRune, key)
				if _, twice := seen[folded]; twice {
					return vakerr.New(vakerr.InvalidArguments, "the arguments of %s name %s twice", shown(name), shown(key)).
						WithRemedy("send each property once")
				}
				seen[folded] = struct{}{}
				isKey = false
			}
			i = end
		}
	}
	return nil
}

// stringEnd is the offset of the quote that ends the string which begins at i.
func stringEnd(valid []byte, i int) int {
	for i++; valid[i] != '"'; i++ {
		if valid[i] == '\\' {
			i++
		}
	}
	return i
}

// unquoted reads a JSON string.
func unquoted(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // it is valid
	return text
}

// foldRune maps all runes that encoding/json takes for the same letter of a field's name to one of them.
func foldRune(r rune) rune {
	if r < unicode.MaxASCII {
		return unicode.ToLower(r)
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return unicode.ToLower(least)
}
