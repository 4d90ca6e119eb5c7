package mcpio

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Redacted stands where a secret stood.
const Redacted = "[redacted]"

const (
	minSecret    = 4  // shorter values are ordinary words too often
	minLineOf    = 16 // a line of a secret with several lines counts as a secret itself from this length on
	maxSecretLen = 64 << 10
)

// Redactor replaces secret values in text that is about to leave this package. Longer values are replaced first, so that no
// rest of one shows behind a shorter one. The zero value and nil replace nothing. A Redactor never changes.
type Redactor struct {
	replacer *strings.Replacer
	secrets  []string // longest first
}

// NewRedactor returns a Redactor for the given values. Values shorter than 4 bytes are ignored. Of each value the forms it
// takes in JSON and in URLs are replaced as well, and the single lines of one with several.
func NewRedactor(values ...string) *Redactor {
	var secrets []string
	for _, v := range values {
		if len(v) < minSecret || len(v) > maxSecretLen {
			continue
		}
		secrets = append(secrets, forms(v)...)
	}
	slices.SortFunc(secrets, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	secrets = slices.Compact(secrets)
	if len(secrets) == 0 {
		return &Redactor{}
	}
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s, Redacted)
	}
	return &Redactor{replacer: strings.NewReplacer(pairs...), secrets: secrets}
}

func forms(value string) []string {
	all := []string{value, url.QueryEscape(value), url.PathEscape(value)}
	if quoted, err := json.Marshal(value); err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]))
	}
	if strings.ContainsAny(value, "\r\n") {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= minLineOf {
				all = append(all, line)
			}
		}
	}
	return all
}

// specRedactor is the Redactor for what the Spec of a server holds.
func specRedactor(s Spec) *Redactor {
	var values []string
	for _, entry := range s.Env {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "PATH" {
			values = append(values, value)
		}
	}
	for _, value := range s.Headers {
		values = append(values, value)
		if _, credential, ok := strings.Cut(value, " "); ok { // "Bearer xyz"
			values = append(values, strings.TrimSpace(credential))
		}
	}
	if u, err := url.Parse(s.URL); err == nil && s.URL != "" {
		if password, ok := u.User.Password(); ok {
			values = append(values, password)
		}
		for _, query := range u.Query() {
			values = append(values, query...)
		}
	}
	return NewRedactor(values...)
}

// String returns s without secrets.
func (r *Redactor) String(s string) string {
	if r == nil || r.replacer == nil {
		return s
	}
	return r.replacer.Replace(s)
}

// holds reports whether s has a secret of at least shortest bytes in it.
func (r *Redactor) holds(s string, shortest int) bool {
	if r == nil {
		return false
	}
	for _, secret := range r.secrets {
		if len(secret) < shortest {
			return false
		}
		if strings.Contains(s, secret) {
			return true
		}
	}
	return false
}

// longest is the length of the longest secret in bytes.
func (r *Redactor) longest() int {
	if r == nil || len(r.secrets) == 0 {
		return 0
	}
	return len(r.secrets[0])
}
