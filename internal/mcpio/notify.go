package mcpio

import (
	"bytes"
	"encoding/json"
)

// notified dispatches a notification of the server. Both slices are the reader's: what is kept is copied.
func (c *Conn) notified(method, params []byte) {
	var name string
	if json.Unmarshal(method, &name) != nil {
		return
	}
	switch name {
	case "notifications/tools/list_changed":
		if c.on.ToolsChanged != nil {
			c.on.ToolsChanged()
		}
	case "notifications/progress":
		c.progressed(params)
	default:
		if c.on.Notification != nil {
			c.on.Notification(name, bytes.Clone(params))
		}
	}
}

// progressed hands progress to the call it belongs to. Progress of a call that is over, or of none of ours, is dropped.
func (c *Conn) progressed(params []byte) {
	var p struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.progressMu.RLock()
	defer c.progressMu.RUnlock()
	if f := c.progress[string(numericID(p.Token))]; f != nil {
		f(bytes.Clone(params))
	}
}
