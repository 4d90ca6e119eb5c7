//go:build !linux

package host

import "github.com/vak-actors/vak-actors/internal/vakerr"

// socketName is the path of the socket where it fits into a sockaddr.
func socketName(data string) (name string, release func(), err error) {
	path := SocketPath(data)
	if len(path) > maxSocketPath {
		return "", nil, vakerr.New(vakerr.ListenFailed, "%s is too long for a socket: %d of %d bytes", path, len(path), maxSocketPath).
			WithRemedy("choose a shorter data folder with --data")
	}
	return path, func() {}, nil
}
