package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/pluginstore"
)

// shown is what show prints as JSON.
type shown struct {
	pluginRow
	Format      plugin.Format        `json:"format"`
	Description string               `json:"description,omitempty"`
	Author      string               `json:"author,omitempty"`
	Brings      plugin.Brings        `json:"brings"`
	Changes     []plugin.Change      `json:"changes,omitempty"` // from the current version to the one that waits
	Unsupported []plugin.Unsupported `json:"unsupported"`
	Ignored     []string             `json:"ignored_manifests"`
	Options     []plugin.Option      `json:"options"`
	Problems    []capability.Problem `json:"problems"`
}

func (a *app) pluginShow() *cobra.Command {
	scope := ""
	c := &cobra.Command{
		Use:     "show ID",
		Short:   "Show what a plugin brings: every command line, address, hook and text",
		Example: "  vak-actors plugin show context7",
		Args:    arguments(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := a.plugins()
			if err != nil {
				return err
			}
			r, err := store.Find(args[0], scope)
			if err != nil {
				return err
			}
			current, facts := store.Facts(r)
			c, err := store.Load(r.Pending().Digest)
			if err != nil {
				return err
			}
			s := shown{
				pluginRow: rowOf(r, facts), Format: c.Manifest.Format, Description: c.Manifest.Description, Author: c.Manifest.Author,
				Brings: c.Brings, Unsupported: orEmpty(c.Manifest.Unsupported), Ignored: orEmpty(c.Manifest.Others),
				Options: orEmpty(c.Manifest.Options), Problems: orEmpty(c.Problems),
			}
			if r.Staged != nil && current != nil {
				s.Changes = plugin.Diff(current.Brings, c.Brings)
			}
			if a.json {
				return printJSON(a.out, s)
			}
			a.printShown(s, c)
			return nil
		},
	}
	return a.ofPlugins(c, &scope, oneScope)
}

func (a *app) printShown(s shown, c *pluginstore.Content) {
	fmt.Fprintf(a.out, "%s %s, scope %s: %s\n%s\nformat %s, from %s\ncontent %s\n", clean(s.ID), clean(s.Version), s.Scope, s.State,
		clean(short(s.Description, 200)), s.Format, clean(s.Source), c.Digest)
	if s.Changes != nil {
		fmt.Fprintln(a.out, "a newer version waits for consent; it changes:")
		printChanges(a.out, s.Changes)
	}
	fmt.Fprintln(a.out, "it brings:")
	printBrings(a.out, s.Brings)
	for _, u := range s.Unsupported {
		fmt.Fprintf(a.out, "not supported: %s %s\n", clean(u.Kind), clean(strings.Join(u.Names, " ")))
	}
	for _, m := range s.Ignored {
		fmt.Fprintf(a.out, "ignored manifest: %s\n", clean(m))
	}
	for _, p := range s.Problems {
		printProblem(a.out, p)
	}
}
