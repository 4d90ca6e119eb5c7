package lifecycle

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"

	ledgerv1 "github.com/vak-actors/vak-actors/messages/vak/ledger/v1"
	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/api"
	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// daemon is a host in a process of its own.
type daemon struct {
	*world
	process *childproc.Process
	http    *http.Transport
}

// daemon starts a process that serves the world, and makes it the world's door. The world has no other host meanwhile.
func (w *world) daemon() *daemon {
	w.Helper()
	self, err := os.Executable()
	w.must(err)
	p, err := childproc.Start(childproc.Spec{
		Owner: w.Name(), Command: self, Env: append(os.Environ(), daemonVariable+"="+w.folder),
	})
	w.must(err)
	d := &daemon{w, p, &http.Transport{}}
	w.Cleanup(d.kill)
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "http://") {
		w.Fatalf("the daemon does not start: %v\n%s%s", err, line, p.StderrTail())
	}
	w.door = remote{client: api.NewClient(api.ClientOptions{HTTP: &http.Client{Transport: d.http}, Base: strings.TrimSpace(line)})}
	return d
}

// kill ends the daemon with SIGKILL and returns when it runs no more.
func (d *daemon) kill() {
	d.process.Kill()
	d.gone()
}

// stop lets the daemon end in order.
func (d *daemon) stop() {
	d.Helper()
	d.must(d.process.Stdin().Close())
	rest, err := io.ReadAll(d.process.Stdout())
	d.gone()
	if exit := d.process.Exit(); exit.Code != 0 || err != nil {
		d.Errorf("the daemon ended with %s, %v\n%s%s", exit, err, rest, d.process.StderrTail())
	}
}

func (d *daemon) gone() {
	<-d.process.Done()
	_ = d.process.Stdin().Close()
	_ = d.process.Stdout().Close()
	d.http.CloseIdleConnections()
}

// remote is the door of a daemon, over its API.
type remote struct {
	client        *api.Client
	protocol.Door // of its methods, those that an API has
}

var _ protocol.Door = remote{}

// Ask implements protocol.Door for what the tests ask daemons.
func (r remote) Ask(ctx context.Context, command proto.Message) (proto.Message, error) {
	switch m := command.(type) {
	case *sessionv1.OpenSession:
		return api.Call(ctx, r.client.Session.OpenSession, m)
	case *sessionv1.GetSession:
		return api.Call(ctx, r.client.Session.GetSession, m)
	case *sessionv1.BeginTurn:
		return api.Call(ctx, r.client.Session.BeginTurn, m)
	case *sessionv1.EndTurn:
		return api.Call(ctx, r.client.Session.EndTurn, m)
	case *sessionv1.Dispatch:
		return api.Call(ctx, r.client.Session.Dispatch, m)
	case *registryv1.Reload:
		return api.Call(ctx, r.client.Registry.Reload, m)
	case *registryv1.GetReport:
		return api.Call(ctx, r.client.Registry.GetReport, m)
	case *registryv1.Revoke:
		return api.Call(ctx, r.client.Registry.Revoke, m)
	case *ledgerv1.ReadLedger:
		return api.Call(ctx, r.client.Ledger.ReadLedger, m)
	case *ledgerv1.VerifyLedger:
		return api.Call(ctx, r.client.Ledger.VerifyLedger, m)
	}
	return nil, vakerr.New(vakerr.InvalidRequest, "the tests do not send %T to daemons", command)
}

// Subscribe implements protocol.Door.
func (remote) Subscribe(string, func()) (func(), error) {
	return nil, vakerr.New(vakerr.InvalidRequest, "a daemon's API has no subscriptions")
}
