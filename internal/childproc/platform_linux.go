package childproc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const haveProcStat = true

// attributes make the child the leader of its own group and let it die with the thread that forked it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap waits for the exit of the child, kills what is left of its group, and only then frees the pid: as long as the leader
// is a zombie, the number of the group cannot belong to anyone else.
func (p *Process) reap() {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.PID(), &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signalLocked(syscall.SIGKILL)
	_ = p.cmd.Wait() // the status is in ProcessState; the pipes are plain files, so there is nothing else to fail
	p.reaped = true
}

// hasExitedLocked asks the kernel, and leaves the reaping to reap.
func (p *Process) hasExitedLocked() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.PID(), &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// stat is what we need of /proc/<pid>/stat.
type stat struct {
	group, session int
	start          uint64 // clock ticks from boot
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

// parseStat reads a line of the form "pid (name) state ppid pgrp session ...". The name may hold blanks and brackets, so
// the fields are counted from the last bracket.
func parseStat(data []byte) (stat, error) {
	_, rest, ok := cutLast(data, ") ")
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 20 {
		return stat{}, errors.New("unexpected form of a stat line")
	}
	group, err1 := strconv.Atoi(string(fields[2]))
	session, err2 := strconv.Atoi(string(fields[3]))
	start, err3 := strconv.ParseUint(string(fields[19]), 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return stat{}, err
	}
	return stat{group: group, session: session, start: start}, nil
}

func cutLast(s []byte, sep string) (before, after []byte, found bool) {
	if i := bytes.LastIndex(s, []byte(sep)); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, nil, false
}

// groupMembers returns every process whose group is pgid.
func groupMembers(pgid int) ([]stat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var members []stat
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil && s.group == pgid {
			members = append(members, s)
		}
	}
	return members, nil
}

// bootID distinguishes this boot from all others; empty if it cannot be read, which matches no record.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
