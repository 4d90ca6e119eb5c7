package childproc

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// GroupRecord is the note on disk about one live process group. A pid alone proves nothing, since pids are reused: a
// process is the recorded one if it has the pid, the start time and the boot of the record.
type GroupRecord struct {
	PID     int    `json:"pid"`
	PGID    int    `json:"pgid"`
	Session int    `json:"session"` // of the daemon, which its children share
	Start   uint64 `json:"start"`   // clock ticks from boot, field 22 of /proc/<pid>/stat
	Boot    string `json:"boot"`    // the kernel's boot id
	Owner   string `json:"owner"`
	Command string `json:"command"`

	DaemonPID   int    `json:"daemon_pid"`
	DaemonStart uint64 `json:"daemon_start"`
}

// recordLimit bounds a record that is read back, in bytes.
const recordLimit = 64 << 10

func recordPath(dir string, pid int) string { return filepath.Join(dir, strconv.Itoa(pid)+".json") }

// writeRecord notes the group of pid in s.GroupDir and returns the path. Without a folder, or on a system without /proc,
// it does nothing. A record torn by a crash is recognised as such when it is read.
func writeRecord(s Spec, pid int) (string, error) {
	if s.GroupDir == "" || !haveProcStat {
		return "", nil
	}
	child, err := readStat(pid)
	if err != nil {
		return "", err
	}
	daemon, err := readStat(os.Getpid())
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(GroupRecord{
		PID: pid, PGID: pid, Session: daemon.session, Start: child.start, Boot: bootID(),
		Owner: s.Owner, Command: s.Command, DaemonPID: os.Getpid(), DaemonStart: daemon.start,
	})
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(s.GroupDir, 0o700); err != nil {
		return "", err
	}
	path := recordPath(s.GroupDir, pid)
	return path, os.WriteFile(path, data, 0o600)
}

func removeRecord(path string) {
	if path != "" {
		_ = os.Remove(path)
	}
}

// ReapLeftovers kills what a daemon that died left behind, by the records in dir, and returns the records of the groups it
// killed. A daemon calls it once, before it starts a child. Records that are stale, damaged or from an earlier boot are
// removed without a kill; those of a daemon that still lives stay. A missing folder means there is nothing to do.
func ReapLeftovers(dir string) ([]GroupRecord, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, vakerr.New(vakerr.WorkspaceUnreadable, "cannot read the folder of process records %s", dir).
			WithRemedy("make it readable for the daemon").WithCause(err)
	}
	var killed []GroupRecord
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		record, err := readRecord(path)
		if err == nil && record.daemonLives() {
			continue
		}
		if err == nil && record.groupLives() {
			_ = syscall.Kill(-record.PGID, syscall.SIGKILL)
			killed = append(killed, record)
		}
		removeRecord(path)
	}
	return killed, nil
}

func readRecord(path string) (GroupRecord, error) {
	f, err := os.Open(path)
	if err != nil {
		return GroupRecord{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, recordLimit))
	if err != nil {
		return GroupRecord{}, err
	}
	return parseRecord(data)
}

func parseRecord(data []byte) (GroupRecord, error) {
	var r GroupRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return GroupRecord{}, err
	}
	// Group 0 is our own, 1 is init's, and a negative one would address every process there is.
	if r.PGID <= 1 || r.PID != r.PGID || r.Start == 0 || r.Boot == "" {
		return GroupRecord{}, errors.New("incomplete record")
	}
	return r, nil
}

// daemonLives reports whether the daemon that wrote r still runs and so still owns the group.
func (r GroupRecord) daemonLives() bool {
	daemon, err := readStat(r.DaemonPID)
	return err == nil && daemon.start == r.DaemonStart && r.Boot == bootID()
}

// groupLives reports whether the group of that number still is the recorded one. While a group has a member, the kernel
// gives its number to no new process: so the leader must be the recorded one, or be gone and have left members, each of
// the same session and younger than the leader was.
func (r GroupRecord) groupLives() bool {
	if r.Boot != bootID() {
		return false
	}
	leader, err := readStat(r.PID)
	if err == nil {
		return leader.start == r.Start && leader.group == r.PGID
	}
	members, err := groupMembers(r.PGID)
	if err != nil || len(members) == 0 {
		return false
	}
	for _, m := range members {
		if m.session != r.Session || m.start < r.Start {
			return false
		}
	}
	return true
}
