package capability

import (
	"slices"
	"strings"
)

// Domain says what a capability serves. The vocabulary is the host's; the classification is the author's, never guessed
// from names. A word this build does not know is a custom domain and survives a round trip unchanged.
type Domain string

// The shared vocabulary.
const (
	LiveData      Domain = "live-data"
	Web           Domain = "web"
	Filesystem    Domain = "filesystem"
	CodeExec      Domain = "code-exec"
	Memory        Domain = "memory"
	Messaging     Domain = "messaging"
	Documents     Domain = "documents"
	Orchestration Domain = "orchestration"
	VCS           Domain = "vcs"
	Observability Domain = "observability"
)

// Vocabulary lists the domains every host knows.
func Vocabulary() []Domain {
	return []Domain{LiveData, Web, Filesystem, CodeExec, Memory, Messaging, Documents, Orchestration, VCS, Observability}
}

var domainAliases = map[string]Domain{
	"livedata": LiveData, "fs": Filesystem, "exec": CodeExec, "docs": Documents, "git": VCS,
}

// ParseDomain reads one domain: trimmed, lower case, '_' as '-', with the common aliases. It never fails; only an empty
// word yields the empty domain.
func ParseDomain(s string) Domain {
	s = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(s)), "_", "-")
	if d, ok := domainAliases[s]; ok {
		return d
	}
	return Domain(s)
}

// Domains is a sorted set without duplicates or empty words. Nil means that nothing was declared.
type Domains []Domain

// ParseDomains reads a list of words into a set.
func ParseDomains(words ...string) Domains {
	var set Domains
	for _, w := range words {
		if d := ParseDomain(w); d != "" {
			set = append(set, d)
		}
	}
	slices.Sort(set)
	return slices.Compact(set)
}

// Match reports whether a capability that serves d is wanted where required is asked for. A capability that declares
// nothing matches everything: narrowing saves context, it is not policy, so it must fail open.
func (d Domains) Match(required Domains) bool {
	return len(d) == 0 || d.Intersects(required)
}

// Intersects reports whether the two sets share a domain.
func (d Domains) Intersects(other Domains) bool {
	return slices.ContainsFunc(d, func(x Domain) bool { return slices.Contains(other, x) })
}
