package cli

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/api"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// stopTime is what a runtime inside a verb gets to end in order.
const stopTime = 10 * time.Second

// answerTime is what a daemon gets to say that it lives.
const answerTime = 5 * time.Second

// pollTime lies between two looks at a daemon that is waited for.
const pollTime = 20 * time.Millisecond

// reach is how a verb finds the runtime: the flags of every verb that needs one.
type reach struct {
	addr      string
	data      string
	config    string
	tenant    string
	tokenFile string
	wait      time.Duration
}

// reaches adds the flags of reach to a verb.
func (a *app) reaches(c *cobra.Command) *cobra.Command {
	flags := c.Flags()
	flags.StringVar(&a.reach.addr, "addr", "", "address of a daemon, for instance http://127.0.0.1:7717; default: the one that serves the workspace")
	flags.StringVar(&a.reach.tokenFile, "token-file", "", "file that holds the bearer token for --addr")
	flags.StringVar(&a.reach.tenant, "tenant", "", "tenant to speak for; default: default")
	flags.DurationVar(&a.reach.wait, "wait", 0, "wait that long for a daemon to be ready, and run nothing without one")
	a.places(c)
	return c
}

// places adds the flags that say where a runtime keeps its things.
func (a *app) places(c *cobra.Command) {
	c.Flags().StringVar(&a.reach.data, "data", "", "folder of the daemon's state; default: one for each workspace below $XDG_STATE_HOME")
	c.Flags().StringVar(&a.reach.config, "config", "", "configuration file; default: vak.toml of the workspace")
}

// link is a runtime that a verb can speak to.
type link struct {
	*api.Client
	close func()
}

// open reaches the runtime: the daemon at --addr, else the daemon of the workspace, else one inside this process that
// ends with close.
func (a *app) open(ctx context.Context) (*link, error) {
	l, err := a.daemon(ctx)
	if l != nil || err != nil {
		return l, err
	}
	h, err := host.Start(ctx, a.hostOptions(false))
	if err != nil {
		return nil, err
	}
	l = &link{inside(h), func() { a.stop(ctx, h) }}
	if err := h.Ready(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// openDaemon reaches a daemon and never starts a runtime: for verbs about what only a daemon has.
func (a *app) openDaemon(ctx context.Context) (*link, error) {
	l, err := a.daemon(ctx)
	if l == nil && err == nil {
		err = a.noDaemon()
	}
	return l, err
}

// daemon reaches a running daemon; nil when none is named and none answers.
func (a *app) daemon(ctx context.Context) (*link, error) {
	token, err := a.token()
	if err != nil {
		return nil, err
	}
	client, base, err := a.endpoint(ctx)
	if client == nil || err != nil {
		return nil, err
	}
	return &link{api.NewClient(api.ClientOptions{HTTP: client, Base: base, Token: token}), client.CloseIdleConnections}, nil
}

// endpoint is the client and the base address of a daemon, ready where --wait asks for it; nil when none is named and none
// answers.
func (a *app) endpoint(ctx context.Context) (*http.Client, string, error) {
	client, base, err := a.address(ctx)
	if client == nil || err != nil || a.reach.wait == 0 {
		return client, base, err
	}
	if err := waitReady(ctx, client, base, a.reach.wait); err != nil {
		client.CloseIdleConnections()
		return nil, "", err
	}
	return client, base, nil
}

func (a *app) address(ctx context.Context) (*http.Client, string, error) {
	if a.reach.addr != "" {
		base := strings.TrimRight(a.reach.addr, "/")
		if u, err := url.Parse(base); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, "", misused("write it as `serve` prints it, for instance http://127.0.0.1:7717", "--addr %q is no address of a daemon", a.reach.addr)
		}
		return &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}, base, nil
	}
	data, err := a.hostOptions(false).DataFolder()
	if err != nil {
		return nil, "", err
	}
	if a.reach.wait == 0 && !host.Answers(ctx, data) {
		return nil, "", nil
	}
	client, base := host.SocketClient(data), "http://"+host.SocketName
	if a.reach.wait == 0 && !answers(ctx, client, base) {
		client.CloseIdleConnections()
		return nil, "", vakerr.New(vakerr.DaemonUnreachable, "the daemon of this workspace does not answer").
			WithRemedy("look whether its process hangs, and end it if so; its socket is %s", host.SocketPath(data))
	}
	return client, base, nil
}

// answers tells a daemon that hangs from one that works.
func answers(ctx context.Context, client *http.Client, base string) bool {
	ctx, done := context.WithTimeout(ctx, answerTime)
	defer done()
	return isOK(ctx, client, base+"/healthz")
}

// waitReady returns when the daemon is ready.
func waitReady(ctx context.Context, client *http.Client, base string, most time.Duration) error {
	ctx, done := context.WithTimeout(ctx, most)
	defer done()
	tick := time.NewTicker(pollTime)
	defer tick.Stop()
	for !isOK(ctx, client, base+"/readyz") {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return vakerr.New(vakerr.DaemonUnreachable, "no daemon was ready within %v", most).
				WithRemedy("start one with `vak-actors serve`, or look at what it prints").WithCause(ctx.Err())
		}
	}
	return nil
}

func isOK(ctx context.Context, client *http.Client, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// inside is a client of a runtime in this process.
func inside(h *host.Host) *api.Client {
	handler := api.NewHandler(api.Options{Door: h.Door()})
	return api.NewClient(api.ClientOptions{HTTP: api.NewMemory(handler), Base: "http://" + host.SocketName})
}

func (a *app) hostOptions(watch bool) host.Options {
	userConfig, home := host.UserFolders()
	return host.Options{
		Workspace: a.workspace, Config: a.reach.config, Data: a.reach.data, UserConfig: userConfig, Home: home, TrustFile: host.TrustFile(),
		Logger: a.logger(slog.LevelWarn), Version: versionText(), Watch: watch,
	}
}

func (a *app) stop(ctx context.Context, h *host.Host) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer done()
	if err := h.Stop(ctx); err != nil {
		a.logger(slog.LevelWarn).Warn("the runtime did not stop in order", "error", err)
	}
}

func (a *app) noDaemon() error {
	folder, err := filepath.Abs(a.workspace)
	if err != nil {
		folder = a.workspace
	}
	return vakerr.New(vakerr.DaemonUnreachable, "no daemon serves %s", folder).
		WithRemedy("start one with `vak-actors serve --workspace %s`, or name one with --addr", a.workspace)
}

// token reads --token-file; empty when there is none.
func (a *app) token() (string, error) {
	if a.reach.tokenFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(a.reach.tokenFile)
	if err != nil {
		return "", vakerr.New(vakerr.FileNotFound, "the token file %s cannot be read", a.reach.tokenFile).
			WithRemedy("name the file that the daemon was given").WithCause(err)
	}
	return strings.TrimSpace(string(text)), nil
}
