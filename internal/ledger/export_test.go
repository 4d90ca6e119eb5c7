package ledger

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// export writes the lines of entries, as `ledger export` does.
func export(t testing.TB, tenant string, entries []Entry) string {
	t.Helper()
	var text bytes.Buffer
	for _, e := range entries {
		if err := json.NewEncoder(&text).Encode(Exported{tenant, e}); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

func TestVerifyExport(t *testing.T) {
	whole := chainOf(t, 5)
	tenant := "tenant"
	good := export(t, tenant, whole)
	lines := strings.SplitAfter(good, "\n")
	for name, c := range map[string]struct {
		text   string
		faults int
	}{
		"whole":                 {good, 0},
		"nothing":               {"", 0},
		"a cut tail":            {strings.Join(lines[:3], ""), 0},
		"of another tenant":     {strings.ReplaceAll(good, `"tenant":"tenant"`, `"tenant":"other"`), 1},
		"a missing entry":       {lines[0] + strings.Join(lines[2:], ""), 1},
		"swapped entries":       {lines[1] + lines[0], 1},
		"a changed body":        {strings.Replace(good, `"body":{`, `"body":{"x":1,`, 1), 1},
		"without its beginning": {strings.Join(lines[1:], ""), 1},
	} {
		got, err := VerifyExport(strings.NewReader(c.text))
		if err != nil || len(got.Faults) != c.faults {
			t.Errorf("%s: %+v, %v, want %d faults", name, got, err, c.faults)
		}
	}
}

func TestVerifyExportRefusesOtherText(t *testing.T) {
	for text, want := range map[string]vakerr.Code{
		"hello\n": vakerr.InvalidRequest, "{}\n": vakerr.InvalidRequest, strings.Repeat("x", maxExportLine+1): vakerr.TooLarge,
	} {
		if _, err := VerifyExport(strings.NewReader(text)); vakerr.CodeOf(err) != want {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

// FuzzVerifyExport: whatever the text, it ends in a verdict or in an error of the catalogue, never in more entries than
// lines.
func FuzzVerifyExport(f *testing.F) {
	f.Add([]byte(export(f, "tenant", chainOf(f, 3))))
	f.Add([]byte(`{"tenant":"t","session":"s","hash":"00"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := VerifyExport(bytes.NewReader(text))
		if err != nil && !vakerr.CodeOf(err).Known() || got.Entries > bytes.Count(text, []byte("\n"))+1 {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}
