package gateway

import (
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
)

// The skills extension of MCP (SEP-2640).
const (
	skillsExtension = "io.modelcontextprotocol/skills"
	skillScheme     = "skill://"

	methodSkillsList    mcp.MCPMethod = "skills/list"
	methodSkillsGet     mcp.MCPMethod = "skills/get"
	methodDirectoryRead mcp.MCPMethod = "resources/directory/read"
)

// skillQuestions are what the runtime is asked for a method, and the member of the result that holds the answer; none where
// the answer is the result.
var skillQuestions = map[mcp.MCPMethod]struct{ what, member string }{
	methodSkillsList: {"list", "skills"}, methodSkillsGet: {"entry", "skill"}, methodDirectoryRead: {"folder", "resources"},
	mcp.MethodResourcesRead: {"file", ""},
}

// aboutSkill reports whether a request is about a file of a skill. Those of servers with the scheme stay theirs on the route
// of the one server.
func (s *session) aboutSkill(m message) bool {
	return s.Server == "" && m.Method == string(mcp.MethodResourcesRead) && strings.HasPrefix(uriOf(m), skillScheme)
}

func uriOf(m message) string {
	var p struct {
		URI string `json:"uri"`
	}
	_ = json.Unmarshal(m.Params, &p) // no URI is one that nothing has
	return p.URI
}

// prepareSkill answers a method of the extension.
func (s *session) prepareSkill(m message, by asker) ([]byte, func() []byte) {
	if s.Server != "" {
		return errNoMethod(m.Method).frame(m.ID), nil
	}
	return nil, func() []byte { return s.skill(m, by) }
}

func (s *session) skill(m message, by asker) []byte {
	question := skillQuestions[mcp.MCPMethod(m.Method)]
	command := &sessionv1.ReadSkill{Tenant: s.Tenant, SessionId: s.runtime.id, What: question.what, Uri: uriOf(m)}
	ctx, cancel := s.asking()
	defer cancel()
	var answer *sessionv1.ReadSkillResult
	err := s.within(ctx, func() (err error) {
		answer, err = protocol.Call[*sessionv1.ReadSkillResult](ctx, s.door, command)
		return err
	})
	if err != nil {
		return failure(s.public(err)).frame(m.ID)
	}
	if question.member == "" {
		return by.result(m.ID, true, answer.GetResultJson())
	}
	return by.result(m.ID, true, []byte(`{"`+question.member+`":`), answer.GetResultJson(), []byte(`}`))
}
