package declare

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
)

// walk is one pass over a workspace. It collects in order of precedence.
type walk struct {
	tree     *tree
	opts     *Options
	limits   config.Limits
	products []*product
	notes    []capability.Problem
	aliases  []capability.Shadow
	roots    []string
	seen     map[string]seen // folders and files that were reached through a link, by real path
	plain    map[string]bool // real paths of the roots that were read
}

type seen struct {
	id  capability.ID
	doc string
}

// add takes a product; shown, when not nil, contributes its problems alone.
func (w *walk) add(p, shown *product) {
	if p != nil {
		w.products = append(w.products, p)
	}
	if shown != nil {
		w.notes = append(w.notes, shown.problems...)
	}
}

func (w *walk) note(severity capability.Severity, at string, f *fault) {
	w.notes = append(w.notes, capability.Problem{
		Severity: severity, Code: f.code, Path: w.opts.Prefix + at, Line: f.line, Message: f.message, Hint: f.hint,
	})
}

// alias notes a document that is the same one by another path.
func (w *walk) alias(id capability.ID, at, by string) {
	w.aliases = append(w.aliases, capability.Shadow{ID: id, Source: w.opts.Prefix + at, By: w.opts.Prefix + by})
}

// open lists a root; false when it does not exist, cannot be read, or is another root by a link.
func (w *walk) open(root string) (*folder, string, bool) {
	folder, exists := w.tree.list(root)
	if !exists {
		return nil, "", false
	}
	if folder.problem != nil {
		w.note(capability.SeverityError, root, folder.problem)
		return folder, root, len(folder.entries) > 0
	}
	resolved, f := realPath(w.tree.fsys, root)
	if f != nil || w.plain[resolved] {
		return nil, "", false
	}
	if w.plain == nil {
		w.plain = map[string]bool{}
	}
	w.plain[resolved] = true
	return folder, resolved, true
}

// skills reads every folder of a root. Those that are links come last, so that a folder and a link to it are found by
// the folder's own name.
func (w *walk) skills(root string) {
	folder, resolved, ok := w.open(root)
	if !ok {
		return
	}
	left := w.limits.MaxSkills
	for _, links := range []bool{false, true} {
		for _, n := range folder.entries {
			if n.isLink() != links || n.name[0] == '.' || !links && !n.kind.IsDir() {
				continue
			}
			if left--; left < 0 {
				continue
			}
			if links {
				w.linkedSkill(n)
			} else if first, again := w.again(resolved, n.name); again {
				w.alias(first.id, n.doc, first.doc)
			} else {
				w.skill(n)
			}
		}
	}
	w.skipped(root, -left, w.limits.MaxSkills, "skill folders", "max_skills")
}

func (w *walk) again(root, name string) (seen, bool) {
	if len(w.seen) == 0 {
		return seen{}, false
	}
	first, again := w.seen[root+"/"+name]
	return first, again
}

// skipped says what a bound left out.
func (w *walk) skipped(root string, n, most int, what, key string) {
	if n > 0 {
		w.note(capability.SeverityError, root, &fault{
			code: "too_many", message: fmt.Sprintf("%d %s beyond the first %d are skipped", n, what, most),
			hint: "remove what is not needed, or raise " + key + " in [limits]",
		})
	}
}

// linkedSkill follows a link to the folder of a skill, once.
func (w *walk) linkedSkill(n node) {
	resolved, f := realPath(w.tree.fsys, n.path)
	if f != nil {
		w.note(capability.SeverityError, n.path, f)
		return
	}
	if !w.tree.isFolder(resolved) {
		return // a link to a file is no skill, as a file is none
	}
	if w.plain[path.Dir(resolved)] {
		doc := resolved + "/SKILL.md"
		if known := w.tree.files[doc]; known != nil && known.pass == w.tree.pass && len(known.product.declarations) > 0 {
			w.alias(known.product.declarations[0].ID, n.doc, doc)
			return
		}
	}
	if first, again := w.seen[resolved]; again {
		w.alias(first.id, n.doc, first.doc)
		return
	}
	if p := w.skill(n); p != nil && len(p.declarations) > 0 {
		w.see(resolved, seen{p.declarations[0].ID, n.doc})
	}
}

func (w *walk) see(resolved string, s seen) {
	if w.seen == nil {
		w.seen = map[string]seen{}
	}
	w.seen[resolved] = s
}

func skillNamed(folder string) capability.ID {
	return capability.ID{Kind: capability.KindSkill, Name: folder}
}

func commandNamed(root, file string) capability.ID {
	return capability.ID{Kind: capability.KindCommand, Name: strings.Join(commandPath(root, file), ":")}
}

// skill reads the document of a folder.
func (w *walk) skill(n node) *product {
	p := w.tree.document(n.doc, skillNamed(n.name), readSkill)
	if p == nil {
		p = w.otherCase(n)
	}
	w.add(p, nil)
	return p
}

// otherCase looks for a document under another spelling. skill.md is in use and is read; any other is named.
func (w *walk) otherCase(n node) *product {
	folder, exists := w.tree.list(n.path)
	if !exists {
		return nil
	}
	if folder.problem != nil {
		w.note(capability.SeverityError, n.path, folder.problem)
		return nil
	}
	other, found := folder.resembling("SKILL.md")
	if lower, has := folder.holds("skill.md"); has {
		other = lower
	}
	switch {
	case !found:
		w.note(capability.SeverityWarning, n.path, &fault{
			code: "skill_file_missing", message: "the folder holds no SKILL.md and is no skill", hint: "add one, or move the folder elsewhere",
		})
		return nil
	case other.name != "skill.md":
		w.note(capability.SeverityWarning, other.path, &fault{
			code: "skill_file_name", message: "the file is called " + quoted(other.name) + " and is not read", hint: "rename it to SKILL.md",
		})
		return nil
	}
	w.note(capability.SeverityWarning, other.path, &fault{
		code: "skill_file_name", message: "the file is called skill.md", hint: "rename it to SKILL.md; other programs do not read it",
	})
	return w.tree.document(other.path, skillNamed(n.name), readSkill)
}

// oneSkill reads a folder that is a skill itself.
func (w *walk) oneSkill(folder string) {
	w.skill(node{name: path.Base(folder), path: folder, doc: path.Join(folder, "SKILL.md"), kind: fs.ModeDir})
}

// oneCommand reads a file that is a command itself.
func (w *walk) oneCommand(name string) {
	w.add(w.tree.document(name, commandNamed(path.Dir(name), name), func(name string, text []byte) *product { return readCommand(path.Dir(name), name, text) }), nil)
}

// commands reads every command below a root.
func (w *walk) commands(root string) {
	folder, resolved, ok := w.open(root)
	if !ok {
		return
	}
	c := &commandWalk{walk: w, root: root, left: w.limits.MaxCommands, met: map[string]bool{resolved: true}}
	c.folder(folder, w.limits.MaxDepth)
	w.skipped(root, -c.left, w.limits.MaxCommands, "commands", "max_commands")
}

type commandWalk struct {
	*walk
	root string
	left int
	met  map[string]bool // real paths of the folders that were entered, so that a cycle of links ends
}

func (c *commandWalk) folder(f *folder, depth int) {
	for _, n := range f.entries {
		if n.name[0] == '.' {
			continue
		}
		kind := n.kind
		if n.isLink() {
			if _, f := realPath(c.tree.fsys, n.path); f != nil {
				c.note(capability.SeverityError, n.path, f)
				continue
			}
			info, err := fs.Stat(c.tree.fsys, n.path)
			if err != nil {
				continue
			}
			kind = info.Mode().Type()
		}
		switch {
		case kind.IsDir():
			c.below(n, depth-1)
		case commandEnding(c.root, n.path) != "":
			c.file(n)
		}
	}
}

func (c *commandWalk) file(n node) {
	if c.left--; c.left < 0 {
		return
	}
	c.add(c.tree.document(n.path, commandNamed(c.root, n.path), func(name string, text []byte) *product { return readCommand(c.root, name, text) }), nil)
}

func (c *commandWalk) below(n node, depth int) {
	if depth < 0 {
		c.note(capability.SeverityWarning, n.path, &fault{
			code: "too_deep", message: fmt.Sprintf("folders more than %d below %s are skipped", c.limits.MaxDepth, c.root),
			hint: "move the commands up, or raise max_depth in [limits]",
		})
		return
	}
	resolved, f := realPath(c.tree.fsys, n.path)
	if f != nil || c.met[resolved] {
		return
	}
	c.met[resolved] = true
	folder, exists := c.tree.list(n.path)
	if !exists {
		return
	}
	if folder.problem != nil {
		c.note(capability.SeverityError, n.path, folder.problem)
	}
	c.folder(folder, depth)
}

const declareInstead = "declare its servers in .mcp.json, or as [mcp.servers.<name>] in vak.toml"

// misnamed are names under which people keep what this program would read elsewhere.
var misnamed = []struct{ name, hint string }{
	{"mcp.json", "call it .mcp.json"},
	{".vscode/.mcp.json", "call it .vscode/mcp.json"},
	{".cursor/.mcp.json", "call it .cursor/mcp.json"},
	{".claude/mcp.json", "call it .mcp.json and put it at the top of the workspace"},
	{".claude/.mcp.json", "put it at the top of the workspace"},
	{"claude_desktop_config.json", declareInstead},
	{"opencode.json", declareInstead},
	{"opencode.jsonc", declareInstead},
	{".kiro/settings/mcp.json", declareInstead},
	{".roo/mcp.json", declareInstead},
	{".amazonq/mcp.json", declareInstead},
	{".windsurf/mcp_config.json", declareInstead},
	{".continue/config.yaml", declareInstead},
	{".vak.toml", "call it vak.toml"},
	{"vak.yaml", "call it vak.toml"},
	{"vak.json", "call it vak.toml"},
}

// misnamed names files that look like ours, or another program's, and are not read.
func (w *walk) misnamed() {
	if !w.opts.Layout.holds(configFile) {
		return // a root of another kind, whose names mean what its own program says
	}
	for _, m := range misnamed {
		if w.opts.Layout.holds(m.name) {
			continue
		}
		if info, err := fs.Stat(w.tree.fsys, m.name); err != nil || info.IsDir() {
			continue
		}
		if m.hint == declareInstead {
			w.add(w.tree.read(m.name, unreadServers), nil)
			continue
		}
		w.note(capability.SeverityWarning, m.name, &fault{
			code: "file_not_read", message: "the file is not read; what it declares is not there", hint: m.hint,
		})
	}
}

// hookPrograms warns of hooks whose command begins with a file of the workspace that cannot be run: such a hook is
// delivered and fails each time.
func (w *walk) hookPrograms(file string, hooks []config.Hook) {
	for _, h := range hooks {
		words := strings.Fields(h.Command)
		if len(words) == 0 || path.IsAbs(words[0]) || !strings.Contains(words[0], "/") {
			continue
		}
		program := path.Clean(words[0])
		info, err := fs.Stat(w.tree.fsys, program)
		switch {
		case err != nil:
			w.note(capability.SeverityWarning, file, &fault{
				code: "hook_command", line: h.Line, message: fmt.Sprintf("the hook %s runs %s, which is not there", h.Name, program),
				hint: "put the program there, or correct the command",
			})
		case info.IsDir() || info.Mode()&0o111 == 0:
			w.note(capability.SeverityWarning, file, &fault{
				code: "hook_command", line: h.Line, message: fmt.Sprintf("the hook %s runs %s, which is not executable", h.Name, program),
				hint: "chmod +x " + program,
			})
		}
	}
}

// watchPlaces notes the folders in which what is read stands or would appear: of each place the deepest that exists, and
// the one around it, in which it may be exchanged. The top is watched only for what stands or would appear directly in it.
func (w *walk) watchPlaces() {
	for _, name := range w.opts.Layout.places() {
		for name != "." && !w.tree.isFolder(name) {
			name = path.Dir(name)
		}
		w.roots = append(w.roots, name)
		if around := path.Dir(name); around != "." {
			w.roots = append(w.roots, around)
		}
	}
}
