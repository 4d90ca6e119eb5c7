package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// masked stands in for what must not be shown.
const masked = "***"

var (
	// secretName matches names of settings whose values are secrets by their name.
	secretName = regexp.MustCompile(`(?i)(^|[_.-])(api|access|secret|private|auth)?[_.-]?(key|token|secret|password|passwd|pwd|bearer|credentials?|authorization)$`)
	// secretShape matches what is a secret by its shape: the prefixes that well-known issuers use.
	secretShape = regexp.MustCompile(`\b(sk-|sk_live_|rk_live_|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abprs]-|xapp-|AKIA|ASIA|AIza|ya29\.|eyJ|npm_|hf_|dop_v1_|shpat_|tvly-|fc-|lin_api_|figd_)[A-Za-z0-9_.\-=]{8,}`)
)

// credential matches headers that prove who somebody is, whatever they are called.
var credential = regexp.MustCompile(`(?i)^(set-)?cookie: |: (bearer|basic|token) \S`)

// SecretName reports whether what goes by that name is a secret: a token, key, password and the like.
func SecretName(name string) bool { return secretName.MatchString(name) }

// SecretLines reads a file of NAME=VALUE lines, without the spaces around both. Of lines with one name the last counts.
func SecretLines(text []byte) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, "="); found {
			all[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return all
}

// literal reports whether something of a value is written out that may be a secret.
func literal(value string) bool { return maskValue(value) != value }

// scheme is a word before a credential, as in "Bearer ${TOKEN}", that tells nothing.
var scheme = regexp.MustCompile(`^[A-Za-z-]{1,16} $`)

// maskValue hides what of a value is written out, the defaults of placeholders included; a placeholder tells nothing and
// stays.
func maskValue(value string) string {
	var shown strings.Builder
	walkPlaceholders(value, func(text string) {
		if text != "" && !scheme.MatchString(text) {
			text = masked
		}
		shown.WriteString(text)
	}, func(p Placeholder) {
		switch {
		case p.Malformed:
			shown.WriteString(masked)
		case p.HasDefault && p.Default != "":
			shown.WriteString("${" + p.Name + ":-" + masked + "}")
		default:
			shown.WriteString("${" + p.Name + "}")
		}
	})
	return shown.String()
}

// maskText hides what is a secret by its shape.
func maskText(value string) string { return secretShape.ReplaceAllString(value, masked) }

// MaskURL hides the password and the secret query values of an address, for showing it.
func MaskURL(text string) string {
	if at := strings.LastIndex(text, "@"); at >= 0 && strings.Contains(text[:at], "://") && !strings.ContainsAny(text[strings.Index(text, "://")+3:at], "/?#") {
		scheme, _, _ := strings.Cut(text, "://")
		text = scheme + "://" + masked + text[at:]
	}
	base, query, found := strings.Cut(text, "?")
	if !found {
		return text
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		if secretQuery(name, value) {
			parts[i] = name + "=" + maskValue(value)
		}
	}
	return base + "?" + strings.Join(parts, "&")
}

func secretQuery(name, value string) bool {
	return literal(value) && (secretName.MatchString(name) || secretShape.MatchString(value))
}

// MaskArgs hides the secrets of a command line, for showing it: --token VALUE, --api-key=VALUE, KEY=VALUE and values of a
// known shape. The answer has as many words as args.
func MaskArgs(args []string) []string {
	shown := slices.Clone(args)
	for i, arg := range args {
		if at, found := secretArg(args, i); found {
			shown[i] = arg[:at] + maskValue(arg[at:])
		}
	}
	return shown
}

// secretArg reports whether args[i] holds a secret that is written out, and where in it the secret begins.
func secretArg(args []string, i int) (at int, found bool) {
	arg := args[i]
	if name, value, assigned := strings.Cut(arg, "="); assigned && literal(value) && !strings.Contains(name, "://") &&
		(secretName.MatchString(strings.TrimLeft(name, "-")) || secretShape.MatchString(value)) {
		return len(name) + 1, true
	}
	if i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") && !strings.HasPrefix(arg, "-") &&
		literal(arg) && secretName.MatchString(strings.TrimLeft(args[i-1], "-")) {
		return 0, true
	}
	return 0, secretShape.MatchString(arg)
}

// checkSecrets warns of secrets in the open: whoever reads the file, or lists the processes, has them.
func (f *findings) checkSecrets(s Server) {
	const hint = "write ${NAME} and keep the value in a secret scope or in the environment"
	if MaskURL(s.URL) != s.URL {
		f.warn("literal_secret", "url", "has a secret written out in its url", hint)
	}
	for i := range s.Args {
		if _, found := secretArg(s.Args, i); found {
			f.warn("literal_secret", "args", fmt.Sprintf("has a secret written out in args, entry %d, where every process list shows it", i+1),
				hint+", and hand it over in env")
			break
		}
	}
	for i, arg := range s.Args {
		if name := secretPlaceholder(arg); name != "" {
			f.warn("secret_in_args", "args", fmt.Sprintf("hands ${%s} over in args, entry %d, where every process list shows it", name, i+1),
				"hand it over in env, if the program can read it there")
			break
		}
	}
	for key, values := range map[string]map[string]string{"env": s.Env, "headers": s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if v := values[name]; literal(v) && (secretShape.MatchString(v) || (secretName.MatchString(name) && len(v) >= 16 && !placeholderWords(v))) {
				f.warn("literal_secret", key, fmt.Sprintf("has a secret written out in %s %s", key, keyText(name)), hint)
			}
		}
	}
}

// secretPlaceholder is the first placeholder of a text that goes by the name of a secret.
func secretPlaceholder(text string) string {
	for _, p := range Placeholders(text) {
		if !p.Malformed && secretName.MatchString(p.Name) {
			return p.Name
		}
	}
	return ""
}

// placeholderWords reports whether a value is what documentation writes in place of a secret.
func placeholderWords(v string) bool {
	low := strings.ToLower(v)
	return blank.MatchString(v) || strings.HasPrefix(v, "<") || strings.Contains(low, "your") || strings.Contains(low, "example") || strings.Contains(low, "redacted")
}

// ReplaceSecrets returns the entry with every secret that is written out replaced by what keep answers: in env and
// headers the whole value, in args and url the part that is one. name says what the secret is called there.
func ReplaceSecrets(s Server, keep func(name, secret string) (string, error)) (Server, error) {
	var failed error
	replace := func(name, secret string) string {
		text, err := keep(name, secret)
		failed = errors.Join(failed, err)
		return text
	}
	s.Args = slices.Clone(s.Args)
	original := slices.Clone(s.Args)
	for i, arg := range original {
		at, found := secretArg(original, i)
		if !found && literal(arg) && MaskURL(arg) != arg {
			at, found = 0, true
		}
		if !found {
			continue
		}
		name := strings.TrimLeft(strings.TrimSuffix(arg[:at], "="), "-")
		if at == 0 && i > 0 && strings.HasPrefix(original[i-1], "-") {
			name = strings.TrimLeft(original[i-1], "-")
		}
		if name == "" {
			name = fmt.Sprintf("ARG_%d", i+1)
		}
		s.Args[i] = arg[:at] + replace(name, arg[at:])
	}
	for _, m := range []*map[string]string{&s.Env, &s.Headers} {
		*m = maps.Clone(*m)
		for _, name := range slices.Sorted(maps.Keys(*m)) {
			if v := (*m)[name]; literal(v) && (secretName.MatchString(name) || secretShape.MatchString(v) || MaskURL(v) != v || credential.MatchString(name+": "+v)) {
				(*m)[name] = replace(name, v)
			}
		}
	}
	s.URL = replaceURL(s.URL, replace)
	return s, failed
}

// replaceURL replaces the user part and the secret query values of an address, and whatever else has a secret's shape.
func replaceURL(text string, replace func(name, secret string) string) string {
	if scheme, rest, found := strings.Cut(text, "://"); found && literal(text) {
		host, tail := rest, ""
		if end := strings.IndexAny(rest, "/?#"); end >= 0 {
			host, tail = rest[:end], rest[end:]
		}
		if at := strings.LastIndex(host, "@"); at > 0 {
			text = scheme + "://" + replace("USER", host[:at]) + host[at:] + tail
		}
	}
	base, query, found := strings.Cut(text, "?")
	if secretShape.MatchString(base) {
		base = secretShape.ReplaceAllStringFunc(base, func(secret string) string { return replace("URL", secret) })
	}
	if !found {
		return base
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		if name, value, _ := strings.Cut(part, "="); secretQuery(name, value) {
			parts[i] = name + "=" + replace(name, value)
		}
	}
	return base + "?" + strings.Join(parts, "&")
}
