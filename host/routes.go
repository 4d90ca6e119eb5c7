package host

import (
	"net/http"
	"time"

	"github.com/vak-actors/vak-actors/internal/api"
)

// handler is everything that answers on one listener: mcp, which checks its callers itself, and vak.v1 for those whom
// authorize lets pass; nil lets everybody.
func (f *front) handler(mcp http.Handler, authorize func(string, http.Header) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", f.readyz)
	mux.Handle("/mcp", f.afterFirstLook(mcp))
	mux.Handle("/mcp/", f.afterFirstLook(mcp))
	mux.Handle("/", f.afterFirstLook(api.NewHandler(api.Options{Door: f.door, Authorize: authorize})))
	return mux
}

// afterFirstLook holds requests back, for a short time, until the workspaces were read: a client that is faster than the
// first epoch would find nothing there.
func (f *front) afterFirstLook(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-f.looked:
		default:
			t := time.NewTimer(firstTime)
			defer t.Stop()
			select {
			case <-f.looked:
			case <-r.Context().Done():
			case <-t.C:
			}
		}
		next.ServeHTTP(w, r)
	})
}

// readyz is 200 once every tenant has published an epoch, and until the front stops.
func (f *front) readyz(w http.ResponseWriter, _ *http.Request) {
	if !f.open.Load() || f.stopping.Load() {
		http.Error(w, "not ready: no epoch is published yet, or the daemon is stopping", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ready\n"))
}
