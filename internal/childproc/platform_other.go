//go:build unix && !linux

package childproc

import (
	"errors"
	"syscall"
)

// Without /proc there are no group records, and without a parent-death signal a daemon killed by SIGKILL leaves its
// children; they see their stdin close.
const haveProcStat = false

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reap waits for the exit of the child, which frees its pid, and then kills what is left of its group.
func (p *Process) reap() {
	_ = p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signalLocked(syscall.SIGKILL)
	p.reaped = true
}

// hasExitedLocked knows no more than reap does.
func (p *Process) hasExitedLocked() bool { return false }

type stat struct {
	group, session int
	start          uint64
}

var errNoProcStat = errors.New("this system has no /proc")

func readStat(int) (stat, error)       { return stat{}, errNoProcStat }
func groupMembers(int) ([]stat, error) { return nil, errNoProcStat }
func bootID() string                   { return "" }
