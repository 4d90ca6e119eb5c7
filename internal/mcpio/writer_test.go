package mcpio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

func pipe(t *testing.T, limit int, stall time.Duration) (*os.File, *pipeWriter) {
	t.Helper()
	r, f, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w, err := newPipeWriter(f, limit, stall)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}

// What is written comes out whole and in order, however slowly it is read.
func TestPipeWriterKeepsOrder(t *testing.T) {
	r, w := pipe(t, 10<<20, patience)
	var want bytes.Buffer
	for i := range 200 {
		frame := append(bytes.Repeat([]byte{byte('a' + i%26)}, 1+i*97%9000), '\n')
		want.Write(frame)
		if n, err := w.Write(frame); n != len(frame) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	got := make([]byte, want.Len())
	if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Fatalf("read %d bytes that differ, %v", len(got), err)
	}
	if _, err := w.Write([]byte("after\n")); err != nil {
		t.Fatal(err)
	}
}

func TestPipeWriterBoundsTheBacklog(t *testing.T) {
	r, w := pipe(t, 100<<10, patience)
	frame := make([]byte, 90<<10)
	if n, err := w.Write(frame); n != len(frame) || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	if n, err := w.Write(frame); n != 0 || !errors.Is(err, errBacklogFull) {
		t.Fatalf("Write = %d, %v; want nothing taken", n, err)
	}
	// A refusal is not the end: when the server reads again, it goes on.
	if _, err := io.ReadFull(r, frame); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("next")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, frame[:4]); err != nil || string(frame[:4]) != "next" {
		t.Fatalf("%q, %v", frame[:4], err)
	}
}

func TestPipeWriterFailsOnStall(t *testing.T) {
	_, w := pipe(t, 1<<20, 50*time.Millisecond)
	if _, err := w.Write(make([]byte, 200<<10)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.failed:
	case <-time.After(patience):
		t.Fatal("a stall is not noticed")
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, errStalled) {
		t.Fatalf("Write after a stall: %v", err)
	}
}

func TestPipeWriterNoticesABrokenPipe(t *testing.T) {
	r, w := pipe(t, 1<<20, patience)
	_ = r.Close()
	if _, err := w.Write([]byte("x")); err == nil {
		t.Fatal("a broken pipe takes a frame")
	}
	select {
	case <-w.failed:
	default:
		t.Fatal("a broken pipe is not announced")
	}
}

func TestPipeWriterCloseIsNoFailure(t *testing.T) {
	_, w := pipe(t, 1<<20, patience)
	if _, err := w.Write(make([]byte, 200<<10)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.failed:
		t.Fatal("Close counts as a failure of the server")
	default:
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, errWriterClosed) {
		t.Fatalf("Write after Close: %v", err)
	}
}
