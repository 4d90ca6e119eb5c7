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
	b := newCatalogBuilder(c.spec.Limits, c.redact)
	cut, err := c.pages(ctx, "tools/list", "tools", b.add)
	if err != nil {
		return Catalog{}, err
	}
	if cut != "" {
		b.truncate(cut)
	}
	if c.hello.era == EraModern && c.spec.Transport == HTTP {
		mirroring := b.mirroring()
		c.mirroring.Store(&mirroring)
	}
	return b.catalog(), nil
}

// pages hands every element of a list to add until it says that there is no room. cut says why a list is not complete. ctx
// and Spec.CallTimeout bound the whole list.
func (c *Conn) pages(ctx context.Context, method, member string, add func(raw json.RawMessage) bool) (cut string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.spec.CallTimeout)
	defer cancel()
	seen := map[string]bool{}
	var cursor json.RawMessage
	for page := 1; ; page++ {
		elements, next, err := c.page(ctx, method, member, cursor)
		if err != nil {
			return "", err
		}
		for _, raw := range elements {
			if !add(raw) {
				return "", nil
			}
		}
		cursor = next
		switch text := string(next); {
		case text == "" || text == "null" || text == `""`:
			return "", nil
		case seen[text]:
			return "the server repeats a cursor", nil
		case page == c.spec.Limits.Pages:
			return fmt.Sprintf("more than %d pages", page), nil
		default:
			seen[text] = true
		}
	}
}

// page asks for one page. A cursor is opaque, and sent back as it came.
func (c *Conn) page(ctx context.Context, method, member string, cursor json.RawMessage) (elements []json.RawMessage, next json.RawMessage, err error) {
	var params json.RawMessage
	if cursor != nil {
		params = fmt.Appendf(nil, `{"cursor":%s}`, cursor)
	}
	raw, err := c.Request(ctx, method, params, CallOptions{})
	if err != nil {
		return nil, nil, err
	}
	var p map[string]json.RawMessage
	if err = json.Unmarshal(raw, &p); err == nil {
		err = json.Unmarshal(p[member], &elements)
	}
	if err != nil || elements == nil {
		return nil, nil, vakerr.New(vakerr.ServerProtocol, "server %q answered %s without a list", c.spec.Name, method).
			WithRemedy("report it to the author of the server").WithCause(err)
	}
	return elements, p["nextCursor"], nil
}
