package lifecycle

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/api"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

// daemonVariable makes this test binary a daemon of the world whose folder it names.
const daemonVariable = "VAK_LIFECYCLE_DAEMON"

func TestMain(m *testing.M) {
	if folder := os.Getenv(daemonVariable); folder != "" {
		if err := serveWorld(folder); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		faulttest.Cleanup()
		os.Exit(code)
	}))
}

// serveWorld is a daemon: it prints its address when it is ready, and ends in order when its input ends.
func serveWorld(folder string) error {
	ctx, cancel := testContext()
	defer cancel()
	h, err := host.Start(ctx, host.Options{Workspace: workspaceOf(folder), Data: dataOf(folder), Version: "test"})
	if err != nil {
		return err
	}
	defer func() { _ = h.Stop(ctx) }()
	if err := h.Ready(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: api.NewHandler(api.Options{Door: h.Door()}), ReadHeaderTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Printf("http://%s\n", listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = server.Close()
	<-served
	return nil
}
