package gateway

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// method answers one method of MCP. handle is called in the order in which requests came, and must not block: what takes
// time is the work it returns instead of an answer, see session.accept.
type method struct {
	legacy, modern bool // the eras that have it
	handle         func(s *session, m message, by asker) (answer []byte, work func() []byte)
}

// methods are all that is served. A new one is an entry here.
var methods = map[mcp.MCPMethod]method{
	mcp.MethodInitialize:             {true, false, atOnce((*session).initialize)},
	mcp.MethodPing:                   {true, false, atOnce((*session).pong)},
	mcp.MethodSetLogLevel:            {true, false, atOnce((*session).setLevel)},
	mcp.MethodServerDiscover:         {false, true, atOnce((*session).discover)},
	mcp.MethodToolsList:              {true, true, (*session).prepareList},
	mcp.MethodPromptsList:            {true, true, (*session).prepareList},
	mcp.MethodResourcesList:          {true, true, (*session).prepareList},
	mcp.MethodResourcesTemplatesList: {true, true, (*session).prepareList},
	mcp.MethodToolsCall:              {true, true, (*session).prepareCall},
	mcp.MethodResourcesRead:          {true, true, (*session).prepareRequest},
	mcp.MethodResourcesSubscribe:     {true, false, (*session).prepareRequest},
	mcp.MethodResourcesUnsubscribe:   {true, false, (*session).prepareRequest},
	methodSkillsList:                 {true, true, (*session).prepareSkill},
	methodSkillsGet:                  {true, true, (*session).prepareSkill},
	methodDirectoryRead:              {true, true, (*session).prepareSkill},
	mcp.MethodPromptsGet:             {true, true, (*session).prepareRequest},
	mcp.MethodCompletionComplete:     {true, true, (*session).prepareRequest},
}

func atOnce(handle func(s *session, m message, by asker) []byte) func(*session, message, asker) ([]byte, func() []byte) {
	return func(s *session, m message, by asker) ([]byte, func() []byte) { return handle(s, m, by), nil }
}

// asker is who sent a request, as far as it matters to the answer.
type asker struct {
	modern bool
	key    string // of the request, among those in flight on the session
	peer   peer   // what the client said of itself
	to     outlet // the request's own stream; nil: it has none
	held   *held  // of the modern era: how its client is asked; nil: it cannot be
}

// errNoMethod is told of a method that is not served in the era of the asker.
func errNoMethod(name string) *rpcError {
	return &rpcError{mcp.METHOD_NOT_FOUND, vakerr.New(vakerr.InvalidRequest, "there is no method %.80q", name)}
}

// answer has the method of a message answer it.
func (s *session) answer(m message, by asker) ([]byte, func() []byte) {
	found, ok := methods[mcp.MCPMethod(m.Method)]
	if !ok || by.modern && !found.modern || !by.modern && !found.legacy {
		return errNoMethod(m.Method).frame(m.ID), nil
	}
	return found.handle(s, m, by)
}

func (s *session) pong(m message, _ asker) []byte { return resultFrame(m.ID, []byte(`{}`)) }

// result is the answer with a result, which gets what every result has in the modern era; cacheable is one that clients
// may keep.
func (by asker) result(id json.RawMessage, cacheable bool, raw ...[]byte) []byte {
	if !by.modern {
		return resultFrame(id, raw...)
	}
	return resultFrame(id, modernResult(cacheable, raw...))
}
