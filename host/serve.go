package host

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vak-actors/vak-actors/internal/gateway"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of the listeners.
const (
	headerTime  = 10 * time.Second // to send the headers of a request
	idleTime    = 2 * time.Minute  // between two requests of a connection
	headerBytes = 64 << 10

	againTime = time.Second     // between two looks at a host that is not ready
	firstTime = 5 * time.Second // that a request waits for the first look
)

// ServeOptions configure Serve. The zero value serves as vak.toml says.
type ServeOptions struct {
	Listen    string        // host:port; default: listen of vak.toml, 127.0.0.1:7717 where it says nothing
	TokenFile string        // file that holds the bearer token; default: token_file of [auth]
	Drain     time.Duration // what requests in flight get when Serve stops; default 10s

	// Listening is called once, when requests are answered; ctx ends with Serve, which waits for it.
	Listening func(ctx context.Context, at Endpoints)
}

// Endpoints is where a daemon answers.
type Endpoints struct {
	URL    string // of the TCP listener, without a path
	Socket string // path of the unix socket
	Token  bool   // clients of the URL need the token
}

// Serve answers on HTTP and on the unix socket of the data folder until ctx ends, and then lets requests in flight end.
// It returns nil after an orderly stop; the host stays started. Errors: config_invalid for an address beyond loopback
// without a token and for a token file that cannot be used, listen_failed for an address that cannot be had.
func (h *Host) Serve(ctx context.Context, o ServeOptions) error {
	o.Listen = cmp.Or(o.Listen, h.config.Listen)
	tokens, err := readTokens(cmp.Or(o.TokenFile, h.besideConfig(h.config.Auth.TokenFile)), h.tokenFiles())
	if err != nil {
		return err
	}
	f := &front{
		door: h.Door(), ready: h.Ready, data: h.data, tokens: tokens, version: h.options.Version, log: h.log,
		looked: make(chan struct{}), release: h.releaseWatchers,
	}
	return f.serve(ctx, o)
}

// front is what stands before the door.
type front struct {
	door    protocol.Door
	ready   func(context.Context) error
	data    string // folder of the socket
	tokens  tokens
	version string
	log     *slog.Logger

	release func() // answers requests that only wait for news; nil: there are none

	looked   chan struct{} // closed once every workspace was read, or could not be
	open     atomic.Bool   // the first epochs are published
	stopping atomic.Bool
}

// serve opens both listeners, or none, and runs until ctx ends or a listener fails.
func (f *front) serve(ctx context.Context, o ServeOptions) error {
	near, err := f.mayListen(o.Listen)
	if err != nil {
		return err
	}
	tcp, err := net.Listen(network(o.Listen), o.Listen)
	if err != nil {
		return listenFailed(o.Listen, err)
	}
	socket, err := listenSocket(f.data)
	if err != nil {
		return errors.Join(err, tcp.Close())
	}
	mcp := gateway.NewHandler(f.gatewayOptions(near))
	defer mcp.Close()
	base, end := context.WithCancel(context.WithoutCancel(ctx)) // requests outlive ctx by the drain time
	defer end()
	servers := []*http.Server{
		newServer(base, guard{loopback: near}.around(f.handler(mcp, f.tokens.allow)), f.log),
		newServer(base, f.handler(mcp, nil), f.log), // the socket's file mode is its authorization
	}

	if f.release != nil {
		servers[0].RegisterOnShutdown(f.release) // when nobody can ask again
		servers[1].RegisterOnShutdown(f.release)
	}

	group, ctx := errgroup.WithContext(ctx)
	for i, l := range []net.Listener{tcp, socket} {
		group.Go(func() error { return serveOn(servers[i], l) })
	}
	group.Go(func() error { f.awaitReady(ctx); return nil })
	if o.Listening != nil {
		at := Endpoints{URL: "http://" + tcp.Addr().String(), Socket: SocketPath(f.data), Token: f.tokens.any != ""}
		group.Go(func() error { o.Listening(ctx, at); return nil })
	}
	group.Go(func() error {
		<-ctx.Done()
		f.stopping.Store(true)
		mcp.Close()
		return drain(context.WithoutCancel(ctx), servers, end, o.Drain)
	})
	return group.Wait()
}

func (f *front) gatewayOptions(loopback bool) gateway.Options {
	o := gateway.Options{Door: f.door, Version: f.version, Log: f.log, Authorize: f.tokens.allow}
	if !loopback {
		o.AllowedHosts = []string{"*"} // the token keeps strangers out, and nobody knows all names of this machine
	}
	return o
}

// awaitReady opens the front as soon as the host is ready, however long that takes.
func (f *front) awaitReady(ctx context.Context) {
	for first := true; ; first = false {
		err := f.ready(ctx)
		f.open.Store(err == nil)
		if first {
			close(f.looked)
		}
		if err == nil {
			return
		}
		f.log.Warn("not ready yet", "code", vakerr.CodeOf(err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(againTime):
		}
	}
}

func newServer(base context.Context, handler http.Handler, log *slog.Logger) *http.Server {
	s := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Protocols:   new(http.Protocols),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true) // gRPC without TLS
	return s
}

// network is "tcp4" for an IPv4 address: net.Listen would take 0.0.0.0 for every address of IPv6, too.
func network(address string) string {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Is4() {
		return "tcp4"
	}
	return "tcp"
}

func serveOn(s *http.Server, l net.Listener) error {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return listenFailed(l.Addr().String(), err)
	}
	return nil
}

// drain takes no more requests, waits for those in flight, and ends what is left after the given time.
func drain(ctx context.Context, servers []*http.Server, end context.CancelFunc, most time.Duration) error {
	if most == 0 {
		most = 10 * time.Second
	}
	ctx, done := context.WithTimeout(ctx, most)
	defer done()
	var group errgroup.Group
	for _, s := range servers {
		group.Go(func() error {
			if s.Shutdown(ctx) == nil {
				return nil
			}
			end()
			return s.Close()
		})
	}
	return group.Wait()
}
