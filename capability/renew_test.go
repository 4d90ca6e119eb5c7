package capability

import "testing"

// A renewed set is the set that would have been made anew, whatever changed.
func TestRenewIsNewSet(t *testing.T) {
	base := func() Declaration {
		return Declaration{
			ID: ID{Kind: KindSkill, Name: "a"}, Origin: Origin{Kind: OriginWorkspace}, Summary: "s", Digest: ContentDigest([]byte("x")),
			Serves: ParseDomains("web"), Config: &Skill{}, Source: "skills/a/SKILL.md",
		}
	}
	first := base()
	before, err := NewSet([]Declaration{first}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Declaration){
		"nothing":           func(*Declaration) {},
		"id":                func(d *Declaration) { d.ID.Name = "b" },
		"origin":            func(d *Declaration) { d.Origin = Origin{Kind: OriginPlugin, Plugin: "p"} },
		"summary":           func(d *Declaration) { d.Summary = "t" },
		"digest":            func(d *Declaration) { d.Digest = ContentDigest([]byte("y")) },
		"serves":            func(d *Declaration) { d.Serves = ParseDomains("web", "memory") },
		"hold":              func(d *Declaration) { d.Hold = &Hold{Reason: "changed"} },
		"config":            func(d *Declaration) { d.Config = &Skill{Invocation: Invocation{DisableModelInvocation: true}} },
		"config, but equal": func(d *Declaration) { d.Config = &Skill{} },
	} {
		d := first
		change(&d)
		for _, revoked := range []Revocations{nil, {d.ID: "gone"}} {
			want, err := NewSet([]Declaration{d}, revoked)
			if err != nil {
				t.Fatal(err)
			}
			got, err := before.Renew([]Declaration{d}, revoked)
			if err != nil || got.Digest() != want.Digest() || got.Consistent() != nil {
				t.Errorf("%s: digest %s, want %s; %v", name, got.Digest(), want.Digest(), err)
			}
		}
	}
}
