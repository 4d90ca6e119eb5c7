package mcpio

import (
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// cpu is what this process has used of the processors.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportCPU adds the processor time per operation; children are not counted.
func reportCPU(b *testing.B, run func()) {
	begun := cpu(b)
	run()
	b.ReportMetric(float64((cpu(b)-begun).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportAllocs()
}

var echoArgs = json.RawMessage(`{"text":"hi"}`)

// BenchmarkEcho compares a call through a Conn with a call through mcp-go's own client and stdio transport, to the same
// server.
func BenchmarkEcho(b *testing.B) {
	b.Run("conn", func(b *testing.B) {
		c := dial(b, server(b), Handlers{})
		reportCPU(b, func() {
			for b.Loop() {
				if _, err := c.CallTool(b.Context(), "echo", echoArgs, CallOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("mcp-go", func(b *testing.B) {
		c := bareClient(b)
		var r mcp.CallToolRequest
		r.Params.Name, r.Params.Arguments = "echo", map[string]any{"text": "hi"}
		reportCPU(b, func() {
			for b.Loop() {
				if _, err := c.CallTool(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

func bareClient(b *testing.B) *client.Client {
	b.Helper()
	s := server(b)
	cmd := exec.Command(s.Command, s.Args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	c := client.NewClient(transport.NewIO(out, in, os.NewFile(^uintptr(0), "")), client.WithProtocolVersion(legacyVersion))
	b.Cleanup(func() { _ = c.Close(); _ = cmd.Wait() })
	if err := c.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := c.Initialize(b.Context(), mcp.InitializeRequest{}); err != nil {
		b.Fatal(err)
	}
	return c
}

func BenchmarkEchoParallel(b *testing.B) {
	c := dial(b, server(b), Handlers{})
	b.SetParallelism(8) // 16 callers on two processors
	reportCPU(b, func() {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := c.CallTool(b.Context(), "echo", echoArgs, CallOptions{}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func BenchmarkBigResult(b *testing.B) {
	c := dial(b, server(b), Handlers{})
	reportCPU(b, func() {
		b.SetBytes(1 << 20)
		for b.Loop() {
			if _, err := c.CallTool(b.Context(), "big", json.RawMessage(`{"bytes":1048576}`), CallOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
