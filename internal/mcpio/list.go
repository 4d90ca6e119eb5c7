package mcpio

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// ListTools asks for the catalog, page by page. A page that fails fails the list: half a catalog is no catalog. A server
// that repeats a cursor, or has more pages or tools than the limits allow, gives a catalog that is marked as truncated.
// ctx and Spec.CallTimeout bound the whole list.
func (c *Conn) ListTools(ctx context.Context) (Catalog, error) {
	ctx, cancel := context.WithTimeout(ctx, c.spec.CallTimeout)
	defer cancel()
	b := newCatalogBuilder(c.spec.Limits, c.redact)
	seen := map[string]bool{}
	var cursor json.RawMessage
	for page := 1; ; page++ {
		p, err := c.listPage(ctx, cursor)
		if err != nil {
			return Catalog{}, err
		}
		for _, raw := range p.Tools {
			if !b.add(raw) {
				return b.catalog(), nil
			}
		}
		cursor = p.NextCursor
		switch next := string(cursor); {
		case next == "" || next == "null" || next == `""`:
			return b.catalog(), nil
		case seen[next]:
			b.truncate("the server repeats a cursor")
			return b.catalog(), nil
		case page == c.spec.Limits.Pages:
			b.truncate(fmt.Sprintf("more than %d pages", page))
			return b.catalog(), nil
		default:
			seen[next] = true
		}
	}
}

type toolPage struct {
	Tools      []json.RawMessage `json:"tools"`
	NextCursor json.RawMessage   `json:"nextCursor"` // opaque; sent back as it came
}

func (c *Conn) listPage(ctx context.Context, cursor json.RawMessage) (toolPage, error) {
	var params json.RawMessage
	if cursor != nil {
		params = fmt.Appendf(nil, `{"cursor":%s}`, cursor)
	}
	raw, err := c.Request(ctx, "tools/list", params, CallOptions{})
	if err != nil {
		return toolPage{}, err
	}
	var p toolPage
	if err := json.Unmarshal(raw, &p); err != nil || p.Tools == nil {
		return toolPage{}, vakerr.New(vakerr.ServerProtocol, "server %q answered tools/list without a list of tools", c.spec.Name).
			WithRemedy("report it to the author of the server").WithCause(err)
	}
	return p, nil
}
