package childproc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// drainWait bounds the wait for the end of a pipe after the whole group was killed. Only a descendant that left the group
// can hold the pipe open longer, and nobody waits for that one.
const drainWait = 500 * time.Millisecond

// Exit is how a child ended.
type Exit struct {
	Code   int            // exit status; -1 when a signal ended it
	Signal syscall.Signal // 0 when it ended by itself
}

// String is the exit in words, as in "exit status 3" or "signal: killed".
func (e Exit) String() string {
	if e.Signal != 0 {
		return "signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Process is one running child. All methods may be called from any goroutine.
type Process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *ring
	record string // path of the group record; empty when there is none

	mu     sync.Mutex // guards reaped, and is held while a signal is sent
	reaped bool

	exit Exit          // written before done is closed
	done chan struct{} // closed by watch
}

// Start starts the process of s. The context of a request has no place here: a child lives until it exits or is stopped.
func Start(s Spec) (*Process, error) {
	path, err := s.executable()
	if err != nil {
		return nil, err
	}
	pipes, err := openPipes()
	if err != nil {
		return nil, explain(s, err)
	}
	cmd := &exec.Cmd{
		Path: path, Args: append([]string{s.Command}, s.Args...), Dir: s.Dir,
		Env:   append([]string{}, s.Env...), // never nil: nil would mean "inherit everything"
		Stdin: pipes.child[0], Stdout: pipes.child[1], Stderr: pipes.child[2],
		SysProcAttr: attributes(),
	}
	forks.acquire() // released when the child was reaped
	forks.do(func() { err = cmd.Start() })
	pipes.closeChild()
	if err != nil {
		forks.release()
		pipes.closeOurs()
		return nil, explain(s, err)
	}
	limit := s.StderrLimit
	if limit <= 0 {
		limit = DefaultStderrLimit
	}
	p := &Process{
		cmd: cmd, stdin: pipes.ours[0], stdout: pipes.ours[1], stderr: newRing(limit), done: make(chan struct{}),
	}
	live.add(Child{PID: cmd.Process.Pid, Owner: s.Owner, Command: s.Command, Started: time.Now()})
	record, recordErr := writeRecord(s, cmd.Process.Pid)
	p.record = record
	go p.watch(pipes.ours[2])
	if recordErr != nil {
		p.Kill()
		<-p.done
		p.closePipes()
		return nil, vakerr.New(vakerr.ProcessStartFailed, "cannot record the process group of command %s in %s",
			quoteCommand(s.Command), s.GroupDir).
			WithRemedy("make the folder writable and free disk space").WithCause(recordErr)
	}
	return p, nil
}

// PID is the process id, which is the id of the group as well.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stdin is the writing end of the child's stdin. It supports write deadlines.
func (p *Process) Stdin() *os.File { return p.stdin }

// Stdout is the reading end of the child's stdout.
func (p *Process) Stdout() *os.File { return p.stdout }

// Done is closed when the child was reaped, its group killed and its stderr drained.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit is how the child ended. It is valid once Done is closed.
func (p *Process) Exit() Exit {
	select {
	case <-p.done:
		return p.exit
	default:
		return Exit{}
	}
}

// HasExited reports whether the child has ended. It knows so at once, while Done takes until everything of the child is
// gone.
func (p *Process) HasExited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reaped || p.hasExitedLocked()
}

// StderrTail is a copy of the latest stderr, at most Spec.StderrLimit bytes.
func (p *Process) StderrTail() []byte { return p.stderr.bytes() }

// watch reaps the child. It is the only caller of Wait.
func (p *Process) watch(stderr *os.File) {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(p.stderr, stderr)
	}()

	p.reap()

	timer := time.NewTimer(drainWait)
	select {
	case <-drained:
	case <-timer.C:
	}
	timer.Stop()
	_ = stderr.Close()
	<-drained

	p.exit = exitOf(p.cmd.ProcessState)
	removeRecord(p.record)
	live.remove(p.cmd.Process.Pid)
	forks.release()
	close(p.done)
}

func exitOf(state *os.ProcessState) Exit {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return Exit{Code: -1, Signal: status.Signal()}
	}
	return Exit{Code: state.ExitCode()}
}

// signalLocked sends sig to the whole group. A group that is gone is no error.
func (p *Process) signalLocked(sig syscall.Signal) {
	if !p.reaped {
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

func (p *Process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signalLocked(sig)
}

func (p *Process) closePipes() {
	_ = p.stdin.Close()
	_ = p.stdout.Close()
}

// pipes are the three standard streams: the child's ends, and ours.
type pipes struct{ child, ours [3]*os.File }

func openPipes() (*pipes, error) {
	var p pipes
	for i := range p.child {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeChild()
			p.closeOurs()
			return nil, err
		}
		if i == 0 {
			p.child[i], p.ours[i] = r, w
		} else {
			p.child[i], p.ours[i] = w, r
		}
	}
	return &p, nil
}

func (p *pipes) closeChild() { closeAll(p.child) }
func (p *pipes) closeOurs()  { closeAll(p.ours) }

func closeAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
