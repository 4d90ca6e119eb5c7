package childproc

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// V58: that a child has ended is known before anything of it is cleared away.
func TestHasExited(t *testing.T) {
	for range 50 {
		p := mustStart(t, role("cat"))
		if p.HasExited() {
			t.Fatal("a running child counts as ended")
		}
		if err := unix.Kill(p.PID(), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		err := unix.Waitid(unix.P_PID, p.PID(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != nil && !errors.Is(err, unix.ECHILD) { // reaped already
			t.Fatal(err)
		}
		if !p.HasExited() {
			t.Fatal("a child that has ended counts as running")
		}
		<-p.Done()
		if !p.HasExited() {
			t.Fatal("a reaped child counts as running")
		}
	}
}
