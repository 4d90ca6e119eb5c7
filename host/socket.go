package host

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// SocketName is the name of the unix socket in a data folder.
const SocketName = "daemon.sock"

// maxSocketPath is what fits into a sockaddr on every system, in bytes.
const maxSocketPath = 100

// SocketPath is where the daemon of a data folder answers programs of the same user.
func SocketPath(data string) string { return filepath.Join(data, SocketName) }

// listenSocket opens the socket of a data folder that this process has locked; one that a dead daemon left is replaced.
func listenSocket(data string) (net.Listener, error) {
	path := SocketPath(data)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, listenFailed(path, err)
	}
	name, release, err := socketName(data)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		release()
		return nil, listenFailed(path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		release()
		return nil, listenFailed(path, err)
	}
	return &socketListener{l, release}, nil
}

type socketListener struct {
	net.Listener
	release func()
}

// Close removes the socket's file too.
func (l *socketListener) Close() error {
	err := l.Listener.Close()
	l.release()
	return err
}

// SocketClient returns an HTTP client that reaches the daemon of a data folder by its socket, whatever the host of a URL.
// Close its idle connections when it is no longer needed.
func SocketClient(data string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, data) },
	}}
}

// Answers reports whether a daemon listens on the socket of a data folder.
func Answers(ctx context.Context, data string) bool {
	conn, err := dialSocket(ctx, data)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func dialSocket(ctx context.Context, data string) (net.Conn, error) {
	name, release, err := socketName(data)
	if err != nil {
		return nil, err
	}
	defer release()
	var d net.Dialer
	return d.DialContext(ctx, "unix", name)
}

// listenFailed says which address cannot be had and why.
func listenFailed(address string, err error) *vakerr.Error {
	why := "it cannot be used"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why = "another program listens there"
	case errors.Is(err, fs.ErrPermission):
		why = "the system does not permit it"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		why = "it is no address of this machine"
	}
	return vakerr.New(vakerr.ListenFailed, "cannot listen on %s: %s", address, why).
		WithRemedy("name another address with --listen, or end the program that holds it; port 0 takes any free port").WithCause(err)
}
