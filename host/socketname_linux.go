package host

import (
	"fmt"
	"os"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// socketName is a name for the socket that fits into a sockaddr: a long path goes by an open descriptor of its folder.
// release lets go of the descriptor; the name ends with it.
func socketName(data string) (name string, release func(), err error) {
	if path := SocketPath(data); len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	folder, err := os.Open(data)
	if err != nil {
		return "", nil, vakerr.New(vakerr.ListenFailed, "the data folder %s cannot be opened", data).WithCause(err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), SocketName), func() { folder.Close() }, nil
}
