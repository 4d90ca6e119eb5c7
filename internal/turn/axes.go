package turn

import "github.com/vak-actors/vak-actors/capability"

// Axes is a host's reading of a request along a few axes, in words; an empty one was not read. Like every reading it only
// chooses what is loaded.
type Axes struct {
	Act      string // what the user wants done
	Evidence string // where what is needed lies
	Modality string // what the request is about
	Clarity  string // clear or unclear
}

// What the words of an axis call for.
var (
	actDomains = map[string]capability.Domains{
		"": nil, "answer": nil, "look": nil,
		"change":      {capability.Filesystem},
		"build":       {capability.Filesystem, capability.CodeExec, capability.VCS},
		"run":         {capability.CodeExec},
		"browse":      {capability.Web},
		"communicate": {capability.Messaging},
		"plan":        {capability.Orchestration},
		"remember":    {capability.Memory},
		"operate":     {capability.Observability, capability.Orchestration},
	}
	evidenceDomains = map[string]capability.Domains{
		"": nil, "none": nil,
		"workspace": {capability.Filesystem, capability.VCS},
		"memory":    {capability.Memory},
		"documents": {capability.Documents},
		"web":       {capability.Web},
		"live":      {capability.LiveData, capability.Web},
	}
	modalityDomains = map[string]capability.Domains{
		"": nil, "text": nil, "image": nil,
		"code":     {capability.Filesystem, capability.CodeExec},
		"document": {capability.Documents},
		"data":     {capability.LiveData},
	}
)

// Required is what the axes call for. A word that is not known, and a request that is unclear, make the reading uncertain.
func (a Axes) Required() (required capability.Domains, uncertain bool) {
	uncertain = a.Clarity != "" && a.Clarity != "clear"
	for _, axis := range []struct {
		words map[string]capability.Domains
		word  string
	}{{actDomains, a.Act}, {evidenceDomains, a.Evidence}, {modalityDomains, a.Modality}} {
		domains, known := axis.words[axis.word]
		required, uncertain = append(required, domains...), uncertain || !known
	}
	return required, uncertain
}
