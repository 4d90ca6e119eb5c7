package turn

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
)

// V204, V205: the axes of a reading yield the domains it requires; what cannot be read along them makes it uncertain, and
// takes nothing away.
func TestAxes(t *testing.T) {
	for name, tc := range map[string]struct {
		axes      Axes
		want      []string
		uncertain bool
	}{
		"nothing was read":   {Axes{}, nil, false},
		"an answer":          {Axes{Act: "answer", Evidence: "none", Modality: "text", Clarity: "clear"}, nil, false},
		"a change of code":   {Axes{Act: "change", Evidence: "workspace", Modality: "code"}, []string{"filesystem", "vcs", "code-exec"}, false},
		"news":               {Axes{Act: "look", Evidence: "live"}, []string{"live-data", "web"}, false},
		"a mail":             {Axes{Act: "communicate"}, []string{"messaging"}, false},
		"unclear":            {Axes{Act: "remember", Clarity: "unclear"}, []string{"memory"}, true},
		"a word of tomorrow": {Axes{Act: "dream", Evidence: "web"}, []string{"web"}, true},
	} {
		got, uncertain := tc.axes.Required()
		want := capability.ParseDomains(tc.want...)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Compact(got)); (len(want) > 0 || len(got) > 0) && diff != "" || uncertain != tc.uncertain {
			t.Errorf("%s: uncertain %v, (-want +got):\n%s", name, uncertain, diff)
		}
	}
}

// Every domain of the vocabulary is in the reach of some word.
func TestAxesReachEveryDomain(t *testing.T) {
	reached := capability.Domains{}
	for _, axis := range []map[string]capability.Domains{actDomains, evidenceDomains, modalityDomains} {
		for _, domains := range axis {
			reached = append(reached, domains...)
		}
	}
	for _, d := range capability.Vocabulary() {
		if !slices.Contains(reached, d) {
			t.Errorf("nothing calls for %s", d)
		}
	}
}
