package turn

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// The kinds of features that servers offer beside tools.
const (
	FeaturePrompts   = "prompts"
	FeatureResources = "resources"
	FeatureTemplates = "templates" // of resources
)

// featureRequest is the request by which a feature is used, which has to be allowed for it to be seen.
var featureRequest = map[string]string{
	FeaturePrompts: "prompts/get", FeatureResources: "resources/read", FeatureTemplates: "resources/read",
}

// Features lists the definitions of a kind that a caller may use: of one server under their own names, or for an empty
// server of all, with prompts named as the tools of servers are, sorted. Of resources with one URI the first server's counts.
func (a *Admitted) Features(kind, server string) ([]json.RawMessage, error) {
	if featureRequest[kind] == "" {
		return nil, vakerr.New(vakerr.InvalidRequest, "there are no features %.32q", kind).WithRemedy("ask for prompts, resources or templates")
	}
	servers := a.ServerNames()
	if server != "" {
		if _, ok := a.Server(server); !ok {
			return nil, vakerr.New(vakerr.UnknownServer, "there is no server %.64q", server)
		}
		servers = []string{server}
	}
	byKey := map[string]json.RawMessage{}
	for _, s := range servers {
		for _, f := range a.observedFeatures(kind, s) {
			key, definition := f.Key, f.Definition
			if kind == FeaturePrompts && server == "" {
				key = ExposedName(s, f.Key)
				definition = member(definition, "name", key)
			}
			if _, taken := byKey[key]; !taken {
				byKey[key] = definition
			}
		}
	}
	list := make([]json.RawMessage, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		list = append(list, byKey[key])
	}
	return list, nil
}

// observedFeatures are those of a server that the caller may use.
func (a *Admitted) observedFeatures(kind, server string) []capability.ObservedFeature {
	c, ok := a.Server(server)
	if !ok || !a.allowsRequest(server, featureRequest[kind]) {
		return nil
	}
	o := c.Config.(*capability.Server).Observation
	switch {
	case o == nil:
		return nil
	case kind == FeaturePrompts:
		return o.Prompts
	case kind == FeatureResources:
		return o.Resources
	}
	return o.Templates
}

// allowsRequest reports whether one of Requests may be sent to an admitted server by this caller at all.
func (a *Admitted) allowsRequest(server, method string) bool {
	return a.AllowsServerTool(server, method) &&
		a.input.Engine.Decide(ServerRequest(server, method, requestTool(method))).Effect != policy.Deny
}

// route finds the server that a request without one is for, and makes its params those of the server.
func (a *Admitted) route(method string, params json.RawMessage) (server string, own json.RawMessage, err *vakerr.Error) {
	var in struct {
		URI  string `json:"uri"`
		Name string `json:"name"`
		Ref  struct {
			Type string `json:"type"`
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"ref"`
	}
	if json.Unmarshal(params, &in) != nil {
		return "", nil, vakerr.New(vakerr.InvalidArguments, "the params of %s have a wrong form", method)
	}
	switch {
	case method == "prompts/get":
		server, name, err := a.promptServer(in.Name)
		return server, member(params, "name", name), err
	case method == "completion/complete" && in.Ref.Type == "ref/prompt":
		server, name, err := a.promptServer(in.Ref.Name)
		var outer struct {
			Ref json.RawMessage `json:"ref"`
		}
		_ = json.Unmarshal(params, &outer) // it was read before
		return server, member(params, "ref", json.RawMessage(member(outer.Ref, "name", name))), err
	case method == "completion/complete":
		server, err := a.resourceServer(in.Ref.URI)
		return server, params, err
	}
	server, err = a.resourceServer(in.URI)
	return server, params, err
}

func (a *Admitted) promptServer(exposed string) (server, name string, err *vakerr.Error) {
	var names []string
	for _, s := range a.ServerNames() {
		for _, p := range a.observedFeatures(FeaturePrompts, s) {
			n := ExposedName(s, p.Key)
			if n == exposed {
				return s, p.Key, nil
			}
			names = append(names, n)
		}
	}
	return "", "", vakerr.New(vakerr.InvalidArguments, "there is no prompt %s", shown(exposed)).
		WithRemedy("the prompts are: %s", phrase.List(names, maxListed))
}

// resourceServer is the server that lists a URI, or else the one with the longest literal beginning of a template that the
// URI has, or else the only one that could have resources. It is the first by name where several are equal.
func (a *Admitted) resourceServer(uri string) (string, *vakerr.Error) {
	var capable []string
	best, longest := "", 0
	for _, s := range a.ServerNames() {
		if !a.allowsRequest(s, "resources/read") {
			continue
		}
		resources, templates := a.observedFeatures(FeatureResources, s), a.observedFeatures(FeatureTemplates, s)
		if slices.ContainsFunc(resources, func(f capability.ObservedFeature) bool { return f.Key == uri }) {
			return s, nil
		}
		for _, t := range templates {
			if literal, _, _ := strings.Cut(t.Key, "{"); len(literal) > longest && strings.HasPrefix(uri, literal) {
				best, longest = s, len(literal)
			}
		}
		if len(resources)+len(templates) > 0 {
			capable = append(capable, s)
		}
	}
	switch {
	case best != "":
		return best, nil
	case len(capable) == 1:
		return capable[0], nil
	}
	return "", vakerr.New(vakerr.InvalidArguments, "no server is known to have the resource %s", shown(uri)).
		WithRemedy("list the resources, or call a tool of its server once so that they are known")
}

// member is an object with one of its members replaced. What is no object stays as it is.
func member(object json.RawMessage, key string, value any) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(object, &fields) != nil {
		return object
	}
	fields[key] = encode(value)
	return encode(fields)
}
