package mcpio

import (
	"bytes"
	"encoding/json"
)

// notified dispatches a notification of the server. callID names the call on whose stream it came; 0 where the transport
// does not tell. Both slices are the reader's: what is kept is copied.
func (c *Conn) notified(callID int64, method, params []byte) {
	var name string
	if json.Unmarshal(method, &name) != nil {
		return
	}
	switch name {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		if c.on.ListChanged != nil {
			c.on.ListChanged()
		}
	case "notifications/progress":
		c.calls.progressed(params, c.redact)
	case "notifications/message":
		c.calls.tell(callID, name, c.redact.JSON(params))
	default:
		if c.on.Notification != nil {
			c.on.Notification(name, c.redact.JSON(bytes.Clone(params)))
		}
	}
}
