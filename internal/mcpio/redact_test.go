package mcpio

import (
	"encoding/json"
	"strings"
	"testing"
)

// V65: values of 4 bytes and more are replaced, longest first.
func TestRedactor(t *testing.T) {
	r := NewRedactor("abc", "secret", "secret-token", "a b+c/d", "quo\"te\\x", "")
	for in, want := range map[string]string{
		"abc":                   "abc",
		"my secret":             "my [redacted]",
		"my secret-token!":      "my [redacted]!",
		"secret-tokens secrets": "[redacted]s [redacted]s",
		"?k=a+b%2Bc%2Fd&":       "?k=[redacted]&",
		`{"k":"quo\"te\\x"}`:    `{"k":"[redacted]"}`,
		"nothing to see":        "nothing to see",
		"secsecretret":          "sec[redacted]ret",
	} {
		if got := r.String(in); got != want {
			t.Errorf("String(%q) = %q, want %q", in, got, want)
		}
	}
	var none *Redactor
	if none.String("x") != "x" || (&Redactor{}).String("x") != "x" {
		t.Error("no secrets, no change")
	}
}

func TestLinesOfASecret(t *testing.T) {
	key := "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\nshort\n-----END KEY-----\n"
	if got := NewRedactor(key).String("read MIIEvQIBADANBgkqhkiG now"); got != "read [redacted] now" {
		t.Fatalf("%q", got)
	}
}

// V65: the values of the environment entries, of headers and of the URL are secrets; PATH is none.
func TestSpecRedactor(t *testing.T) {
	r := specRedactor(Spec{
		Env:     []string{"PATH=/usr/bin", "TOKEN=tok-123", "N=123", "broken"},
		Headers: map[string]string{"Authorization": "Bearer abc.def"},
		URL:     "https://user:pa55word@host/mcp?key=query-key",
	})
	in := "/usr/bin tok-123 123 abc.def pa55word query-key user host"
	if got, want := r.String(in), "/usr/bin [redacted] 123 [redacted] [redacted] [redacted] user host"; got != want {
		t.Fatalf("%q, want %q", got, want)
	}
}

func TestRedactJSON(t *testing.T) {
	r := NewRedactor("secret")
	got := r.JSON(json.RawMessage(`{"b":[1.50,{"x":"a secret"}],"a":"secret"}`))
	if want := `{"a":"[redacted]","b":[1.50,{"x":"a [redacted]"}]}`; string(got) != want {
		t.Fatalf("%s, want %s", got, want)
	}
	if got := r.JSON(json.RawMessage(`["secret"]`)); strings.Contains(string(got), "secret\"") {
		t.Fatalf("%s", got)
	}
}

// What stands between two marks holds no secret.
func FuzzRedactor(f *testing.F) {
	f.Add("secret", "secret-token", "a secret-token and a secret")
	f.Add("aaaa", "aaaaa", "aaaaaaaaaaaaaaa")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		r := NewRedactor(a, b)
		for piece := range strings.SplitSeq(r.String(text), Redacted) {
			for _, secret := range []string{a, b} {
				if len(secret) >= minSecret && len(secret) <= maxSecretLen && strings.Contains(piece, secret) {
					t.Fatalf("secret %q in %q", secret, piece)
				}
			}
		}
		if raw, err := json.Marshal(map[string]string{"k": text}); err == nil && !json.Valid(r.JSON(raw)) {
			t.Fatalf("%s became %s", raw, r.JSON(raw))
		}
	})
}
