package childproc

import (
	"context"
	"syscall"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// killWait bounds the wait for the death of a child that was sent SIGKILL. Only the kernel can delay that one, for
// instance on a hung network file system.
const killWait = 5 * time.Second

// Grace is how long Stop waits after each step before it takes the next. Zero means the default, a negative value means
// not at all.
type Grace struct {
	Stdin time.Duration // after closing stdin; default 2 s
	Term  time.Duration // after SIGTERM; default 3 s
}

func (g Grace) withDefaults() Grace {
	if g.Stdin == 0 {
		g.Stdin = 2 * time.Second
	}
	if g.Term == 0 {
		g.Term = 3 * time.Second
	}
	return g
}

// Stop ends the child: it closes stdin, waits, sends SIGTERM, waits, sends SIGKILL. The end of ctx shortens the way to
// SIGKILL. Stop returns when the child was reaped; the error says that even SIGKILL did not end it within 5 s. Stdout stays
// open, so that its reader sees the last words.
func (p *Process) Stop(ctx context.Context, g Grace) error {
	g = g.withDefaults()
	_ = p.stdin.Close()
	if p.await(ctx, g.Stdin) {
		return nil
	}
	p.signal(syscall.SIGTERM)
	if p.await(ctx, g.Term) {
		return nil
	}
	p.Kill()
	if p.await(context.WithoutCancel(ctx), killWait) {
		return nil
	}
	return vakerr.New(vakerr.Internal, "process %d did not die of SIGKILL within %s", p.PID(), killWait).
		WithRemedy("it hangs in the kernel; check the file systems it uses")
}

// Kill sends SIGKILL to the group and does not wait.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// await reports whether the child ended within d and before ctx did.
func (p *Process) await(ctx context.Context, d time.Duration) bool {
	if d < 0 {
		d = 0
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
