package childproc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// DefaultStderrLimit is how many bytes of a child's latest stderr are kept, and DefaultStdoutLimit how many bytes of its
// stdout Run captures.
const (
	DefaultStderrLimit = 64 << 10
	DefaultStdoutLimit = 64 << 10
)

// Spec says which process to start. Only Command is needed.
type Spec struct {
	Owner   string   // for whom, as in "mcp:github"; shown by Live
	Command string   // a path, or a name looked up on the PATH of Env; a relative path counts from Dir
	Args    []string // without the command's own name
	Env     []string // KEY=VALUE, complete; see Environment
	Dir     string   // working folder; empty means the daemon's

	StderrLimit int    // bytes; 0 means DefaultStderrLimit
	StdoutLimit int    // bytes captured by Run; 0 means DefaultStdoutLimit
	GroupDir    string // folder for the group record; empty means none
}

// Environment is the environment of a child: the PATH of this process and the declared KEY=VALUE entries, of which the
// last of a name wins. Nothing else is inherited.
func Environment(declared []string) []string {
	env := make([]string, 0, len(declared)+1)
	if path, ok := os.LookupEnv("PATH"); ok {
		env = append(env, "PATH="+path)
	}
	return append(env, declared...)
}

// ResolveCommand turns a relative command with a path part into the file of that name in the workspace, if there is one.
// Any other command is returned as it is.
func ResolveCommand(workspace, command string) string {
	if filepath.IsAbs(command) || !strings.ContainsRune(command, filepath.Separator) {
		return command
	}
	candidate := filepath.Join(workspace, command)
	if info, err := os.Stat(candidate); err != nil || info.IsDir() {
		return command
	}
	return candidate
}

// executable is the absolute path of the command of s, or the error that tells its author what is wrong with it.
func (s Spec) executable() (string, error) {
	if s.Command == "" {
		return "", startError(s, "no command is given").WithRemedy("name a command")
	}
	if s.Dir != "" {
		if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
			return "", startError(s, "its working folder %s is not there", s.Dir).
				WithRemedy("create the folder or correct the path").WithCause(err)
		}
	}
	if !strings.ContainsRune(s.Command, filepath.Separator) {
		return s.lookup()
	}
	path := s.Command
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", startError(s, "its path cannot be made absolute").WithCause(err)
	}
	if err := runnable(path); err != nil {
		return "", explain(s, err)
	}
	return path, nil
}

// lookup finds the command on the PATH the child will see, which need not be ours.
func (s Spec) lookup() (string, error) {
	var path string
	for _, entry := range s.Env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // a relative entry would make the command depend on where the daemon was started
		}
		if candidate := filepath.Join(dir, s.Command); runnable(candidate) == nil {
			return candidate, nil
		}
	}
	return "", startError(s, "there is no such command on PATH").
		WithRemedy("install %s, or name it by its full path", s.Command).WithCause(fs.ErrNotExist)
}

func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return syscall.EISDIR
	case info.Mode()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}

// explain is the start error for what the system answered; the system's own text stays in the cause.
func explain(s Spec, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// The file was seen before the start, so at that point it is the interpreter that is missing.
		return startError(s, "the file, or the interpreter its first line names, does not exist").
			WithRemedy("check the path and that the interpreter is installed").WithCause(err)
	case errors.Is(err, fs.ErrPermission):
		return startError(s, "the file may not be executed").
			WithRemedy("run `chmod +x` on it and check the permissions of its folders").WithCause(err)
	case errors.Is(err, syscall.EISDIR):
		return startError(s, "it is a folder").WithRemedy("name the program in it").WithCause(err)
	case errors.Is(err, syscall.ENOEXEC):
		return startError(s, "the file is no program for this machine").
			WithRemedy("give a script its interpreter in the first line, or name the interpreter as the command").WithCause(err)
	case errors.Is(err, syscall.E2BIG):
		return startError(s, "its arguments and environment are too long").WithRemedy("shorten them").WithCause(err)
	}
	return startError(s, "the system refused to start it").
		WithRemedy("look for the cause in the daemon's log").WithCause(err)
}

func startError(s Spec, reason string, args ...any) *vakerr.Error {
	e := vakerr.New(vakerr.ProcessStartFailed, reason, args...)
	e.Reason = "cannot start command " + quoteCommand(s.Command) + ": " + e.Reason
	return e
}

// quoteCommand names a command without its arguments, which may hold secrets.
func quoteCommand(command string) string {
	const most = 256
	if len(command) > most {
		command = command[:most] + "..."
	}
	return `"` + command + `"`
}
