package dispatch

import (
	"testing"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V161: a call can be judged from the moment on from which no later policy is seen at the gate, and not before.
func TestFlight(t *testing.T) {
	s := newShop(t)
	c := s.begin()
	c.Flight = &Flight{}
	if why := c.Flight.Forbidden(); why != nil {
		t.Errorf("before its effect: %v", why)
	}
	var under map[string]*vakerr.Error
	s.meddle = func() {
		under = map[string]*vakerr.Error{}
		for _, mode := range []string{"full-access", "workspace-write", "read-only"} {
			s.rules.Mode = mode
			s.publish()
			under[mode] = c.Flight.Forbidden()
		}
		s.rules.Mode = "full-access"
		s.publish()
	}
	if out := s.call(t.Context(), c, "do", `{}`); out.Refusal != nil {
		t.Fatal(out.Refusal)
	}
	if under["full-access"] != nil || under["workspace-write"] == nil || under["read-only"] == nil || under["read-only"].Code != vakerr.PermissionDenied {
		t.Errorf("do: %v", under)
	}
	if out := s.call(t.Context(), c, "look", `{}`); out.Refusal != nil || under["read-only"] != nil || under["workspace-write"] != nil {
		t.Errorf("look: %v, %v", out.Refusal, under)
	}
}
