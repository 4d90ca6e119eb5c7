package config

import (
	"path"
	"slices"
	"strings"
	"time"
)

// installTime is how long a server may take to come up whose command may have to fetch it first. To end an install halfway
// makes the next attempt begin anew, so that it never comes up.
const installTime = 5 * time.Minute

// startTime is how long any other server may take: of real ones the slowest took 19 s on a busy machine, and most less than 5.
const startTime = 30 * time.Second

// installers are programs that fetch what they run, by the first argument for those that do other things, too.
var installers = map[string][]string{
	"npx": nil, "bunx": nil, "uvx": nil, "pnpx": nil,
	"npm": {"exec", "x"}, "pnpm": {"dlx"}, "yarn": {"dlx"}, "bun": {"x"}, "uv": {"run", "tool"}, "pipx": {"run"}, "deno": {"run"},
	"docker": {"run"}, "podman": {"run"}, "go": {"run"},
}

// Installs reports whether a command may have to fetch the server before it starts it.
func Installs(command string, args []string) bool {
	program := strings.TrimSuffix(strings.TrimSuffix(path.Base(strings.ReplaceAll(command, `\`, "/")), ".cmd"), ".exe")
	verbs, is := installers[program]
	if !is {
		return false
	}
	first := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	return verbs == nil || first >= 0 && slices.Contains(verbs, args[first])
}

// StartTime is how long the server may take to come up: what is written, or else what its command needs.
func (s Server) StartTime() time.Duration {
	switch {
	case s.StartTimeout != 0:
		return s.StartTimeout
	case Installs(s.Command, s.Args):
		return installTime
	}
	return startTime
}
