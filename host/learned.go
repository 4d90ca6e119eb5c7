package host

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// learnedName is the file of learned rules, in the folder of a tenant's state.
const learnedName = "learned.toml"

// LearnedPath is the file of a tenant's learned rules in a data folder.
func LearnedPath(data, tenant string) string {
	if tenant == "" || tenant == protocol.DefaultTenant {
		return filepath.Join(data, learnedName)
	}
	return filepath.Join(data, "tenants", tenant, learnedName)
}

// learnedFile is the file of a tenant's learned rules. It belongs to the user: passes read it anew, and what is added is
// added to what it holds. Its methods may be called from any goroutine.
type learnedFile struct {
	path      string
	workspace string
	passes    *protocol.Address // of the reconciler

	mu sync.Mutex // held while rules are added
}

// read returns the rules in the file. One that cannot be read, or that others may write, has none.
func (f *learnedFile) read() (*policy.Learned, []capability.Problem) {
	if f == nil {
		return nil, nil
	}
	text, problem := f.text()
	if problem != nil {
		return nil, []capability.Problem{*problem}
	}
	rules, problems := policy.ParseLearned(learnedName, text)
	var all *policy.Learned
	for _, r := range rules {
		all = all.With(r.Rule)
	}
	return all, problems
}

// text is what the file holds; nothing where it is not there.
func (f *learnedFile) text() ([]byte, *capability.Problem) {
	file, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, f.problem("it cannot be read", "make it readable for the user of the daemon")
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular():
		return nil, f.problem("it is no file", "put a file in its place, or remove it")
	case info.Mode().Perm()&0o022 != 0:
		return nil, f.problem("others may write it", "take that from them: chmod 600 "+f.path)
	case f.inWorkspace():
		return nil, f.problem("it lies in the workspace, where whoever writes the workspace could allow himself anything", "keep the data folder outside of the workspace")
	}
	text, err := io.ReadAll(io.LimitReader(file, policy.MaxLearnedBytes+1))
	if err != nil {
		return nil, f.problem("it cannot be read", "make it readable for the user of the daemon")
	}
	return text, nil
}

func (f *learnedFile) problem(why, hint string) *capability.Problem {
	return &capability.Problem{
		Severity: capability.SeverityError, Code: "learned_unreadable", Path: learnedName,
		Message: "the learned rules in " + f.path + " are not in force: " + why, Hint: hint,
	}
}

func (f *learnedFile) inWorkspace() bool {
	file, err := filepath.EvalSymlinks(filepath.Dir(f.path))
	if err != nil {
		file = filepath.Dir(f.path) // it is not there yet
	}
	workspace, err := filepath.EvalSymlinks(f.workspace)
	if err != nil {
		workspace = f.workspace
	}
	rel, err := filepath.Rel(workspace, file)
	return err == nil && filepath.IsLocal(rel)
}

// Learn implements approval.Learner: it adds rules and returns when a pass has put them in force. One that fails is in the
// report, and the next one does.
func (f *learnedFile) Learn(ctx context.Context, rules []string, by string, at time.Time) error {
	if err := f.add(rules, by, at); err != nil {
		return err
	}
	_, _ = actorkit.Ask[*registryv1.ReloadResult](ctx, f.passes.Ref(), protocol.Freshen{})
	return nil
}

func (f *learnedFile) add(rules []string, by string, at time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	fail := func(why, hint string, cause error) error {
		return vakerr.New(vakerr.ConfigInvalid, "the rule is not learned, and the call is allowed this once: %s %s", f.path, why).
			WithRemedy("%s", hint).WithCause(cause)
	}
	text, problem := f.text()
	switch {
	case problem != nil:
		return fail("cannot be used", problem.Hint, nil)
	case f.inWorkspace():
		return fail("lies in the workspace", "keep the data folder outside of the workspace", nil)
	}
	text, err := policy.AppendLearned(text, rules, by, at)
	if err != nil {
		return fail("cannot be read", "repair it: "+err.Error(), err)
	}
	if err := rootfs.ReplaceFile(f.path, text); err != nil {
		return fail("cannot be written", "see that its folder can be written", err)
	}
	return nil
}
