package mcpio

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
)

// paramHeader is the keyword of a schema that has an argument repeated in a header.
const paramHeader = `"x-mcp-header"`

// mirroring takes out the tools with arguments that headers repeat. Those that would repeat them in a way that is not allowed
// are left out of the catalog: a call of one could not be sent.
func (b *catalogBuilder) mirroring() map[string]*mcp.Tool {
	all := map[string]*mcp.Tool{}
	b.c.Tools = slices.DeleteFunc(b.c.Tools, func(t ToolDef) bool {
		if !bytes.Contains(t.InputSchema, []byte(paramHeader)) {
			return false
		}
		tool := &mcp.Tool{Name: t.Name, RawInputSchema: t.InputSchema}
		if json.Unmarshal(t.Raw, tool) != nil {
			tool = &mcp.Tool{Name: t.Name}
		}
		if err := mcp.ValidateParamHeaderAnnotations(tool); err != nil {
			b.c.Quarantined = append(b.c.Quarantined, Quarantine{Name: t.Name, Reason: "its x-mcp-header cannot be used: " + clip(err.Error(), maxErrorText)})
			return true
		}
		all[t.Name] = tool
		return false
	})
	return all
}
