package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what version prints.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, where the build knows it
	Modified bool   `json:"modified,omitempty"` // the source had changes beyond the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the build",
		Example: "  vak-actors version --json",
		Args:    arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if a.json {
				return printJSON(a.out, b)
			}
			fmt.Fprintf(a.out, "vak-actors %s\n", b.Version)
			if b.Revision != "" {
				fmt.Fprintf(a.out, "revision %s\n", b.Revision)
			}
			fmt.Fprintf(a.out, "%s %s\n", b.Go, b.Platform)
			return nil
		},
	}
}

func versionText() string { return thisBuild().Version }

func thisBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
