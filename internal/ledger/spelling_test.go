package ledger

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzSpelledAsMarshal holds the quick check to what json.Marshal itself does.
func FuzzSpelledAsMarshal(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"a":1}`, `{"a": 1}`, "{\n}", `{"a":"x y"}`, `{"a":"<"}`, `{"a":"\u003c"}`, `{"&":null}`, `{"a":"\""}`,
		`{"a":"\\ "}`, `{"a":"\\" }`, "{\"a\":\"\u2028\"}", "{\"a\":\"\u2029\"}", "{\"a\":\"\u2027\"}", "[1,\t2]", " 1",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		canonical, err := json.Marshal(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.Equal(canonical, raw); spelledAsMarshal(raw) != want {
			t.Errorf("%q counts as spelled by json.Marshal: %v", raw, !want)
		}
	})
}
