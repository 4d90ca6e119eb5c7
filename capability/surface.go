package capability

import (
	"encoding/json"
	"fmt"
	"strings"
)

// SurfaceDigest is the digest of what a capability is to whoever uses it: its description, schema, body, what it runs and
// what it serves. It is the same on every machine: where files lie, what secrets hold and what was learned of a server do
// not enter it.
func (d *Declaration) SurfaceDigest() string {
	config := d.Config
	switch c := d.Config.(type) {
	case *Server:
		bare := *c
		bare.Observation, bare.SecretDigest = nil, ""
		config = &bare
	case *Hook:
		bare := *c
		bare.Position, bare.Root = 0, Folder{}
		config = &bare
	case *Skill:
		bare := *c
		bare.Root = Folder{}
		config = &bare
	case *Command:
		bare := *c
		bare.Root = Folder{}
		config = &bare
	}
	text, err := json.Marshal(struct {
		ID      string
		Summary string
		Digest  string
		Serves  Domains
		Config  Config
	}{d.ID.String(), d.Summary, d.Digest, d.Serves, config})
	if err != nil {
		return "" // a schema that is no JSON: no reader lets it pass
	}
	return ContentDigest(text)
}

// SurfaceDigest is the digest of what a server's tool is to a model.
func (t *ObservedTool) SurfaceDigest() string {
	bare := *t
	bare.Hold = nil
	text, err := json.Marshal(&bare)
	if err != nil {
		return ""
	}
	return ContentDigest(text)
}

// Surface is the set as one line each, sorted: what may be used, with its digest, and below each server the tools that
// were seen of it. It holds no epoch, time or path, so that two machines that govern the same write the same. shown says
// what counts; nil: everything.
func (s *Set) Surface(shown func(ID) bool) string {
	var out strings.Builder
	for c := range s.All() {
		if !c.Usable() || shown != nil && !shown(c.ID) {
			continue
		}
		fmt.Fprintf(&out, "%s %s\n", c.ID, c.SurfaceDigest())
		server, is := c.Config.(*Server)
		if !is || server.Observation == nil {
			continue
		}
		for i := range server.Observation.Catalog {
			if t := &server.Observation.Catalog[i]; t.Hold == nil {
				fmt.Fprintf(&out, "%s/%s %s\n", c.ID, t.Name, t.SurfaceDigest())
			}
		}
	}
	return out.String()
}
