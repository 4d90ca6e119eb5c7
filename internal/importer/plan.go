package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Request says what is brought in, and where to. All folders are absolute.
type Request struct {
	Client    string // one of Clients
	Home      string // the home folder that holds the client's files
	Workspace string // whose local servers count, and which names are taken
	Target    string // folder of the vak.toml that is written: the workspace, or the user's own root
	Data      string // folder of the daemon's state, for secrets and what undo needs
}

// Action is what becomes of one server.
type Action string

// The actions.
const (
	Take    Action = "take"
	Present Action = "present" // it is there already, just so
	Taken   Action = "taken"   // something else has the name
	Skip    Action = "skip"    // it cannot be used here
)

// Item is one server of the client.
type Item struct {
	Name    string   `json:"name"` // in vak.toml
	From    string   `json:"from"` // file and line
	Action  Action   `json:"action"`
	Reason  string   `json:"reason,omitempty"`
	Secrets []string `json:"secrets,omitempty"` // names under which its secrets are kept
}

// Plan is what would be done. It has no secret in it that a caller can see.
type Plan struct {
	Client    string               `json:"client"`
	Sources   []string             `json:"sources"`
	Items     []Item               `json:"items"`
	Proposals []string             `json:"proposals"` // allow rules that the client has, for a person to decide
	Problems  []capability.Problem `json:"problems"`
	Diff      string               `json:"diff"` // secrets are masked

	request Request
	edits   []edit
	servers map[string]config.Server // what is taken
}

// edit is a file with what is put at its end.
type edit struct {
	folder, name string
	before       []byte
	existed      bool
	mode         fs.FileMode
	added        string
	shown        string // added, without secrets
}

const (
	configFile  = "vak.toml"
	secretsFile = "secrets.env"
)

// Prepare reads the client's files and settles what would be written. It writes nothing.
func Prepare(r Request, now time.Time) (*Plan, error) {
	p := &Plan{Client: r.Client, Sources: []string{}, Items: []Item{}, Proposals: []string{}, Problems: []capability.Problem{}, request: r, servers: map[string]config.Server{}}
	servers, err := p.read(r)
	if err != nil {
		return nil, err
	}
	settings, err := open(r.Target, configFile, 0o644)
	if err != nil {
		return nil, err
	}
	secrets, err := open(r.Data, secretsFile, 0o600)
	if err != nil {
		return nil, err
	}
	have, _ := config.Parse(configFile, settings.before)
	if have.Unreadable {
		return nil, vakerr.New(vakerr.ConfigInvalid, "%s cannot be read, so nothing is added to it", filepath.Join(r.Target, configFile)).
			WithRemedy("see `vak-actors check` and repair it")
	}
	elsewhere, err := declared(r, now)
	if err != nil {
		return nil, err
	}
	k := keeper{lines: config.SecretLines(secrets.before)}
	for _, s := range servers {
		p.decide(s, have, elsewhere, &k, &settings)
		p.Proposals = append(p.Proposals, s.Proposals...)
	}
	for _, line := range k.added {
		secrets.add(line, strings.SplitN(line, "=", 2)[0]+"=***\n")
	}
	return p, p.finish(settings, secrets)
}

// decide settles what becomes of one server.
func (p *Plan) decide(s found, have config.Config, elsewhere map[string]string, k *keeper, settings *edit) {
	item := Item{Name: strictName(s.ID), From: fmt.Sprintf("%s:%d", s.from, s.Line), Action: Skip}
	defer func() { p.Items = append(p.Items, item) }()
	reason, _ := s.Server.Unready()
	switch {
	case !s.Server.Enabled:
		item.Reason = "it is switched off there"
		return
	case reason != "":
		item.Reason = reason
		return
	case item.Name == "":
		item.Reason = "it has no name that can be written"
		return
	case slices.ContainsFunc(p.Items, func(i Item) bool { return i.Name == item.Name && i.Action != Skip }):
		item.Action, item.Reason = Taken, "another server of the client has this name"
		return
	}
	mark := len(k.added)
	server, names, err := k.hide(item.Name, s.Server)
	if err != nil {
		item.Reason = err.Error()
		return
	}
	if by, taken := have.MCP[item.Name]; taken || strings.Contains(string(settings.before), header(item.Name)) {
		item.Action, item.Reason = Taken, "vak.toml has a server of this name"
		if taken && same(by, server) {
			item.Action, item.Reason = Present, ""
		}
		k.added = k.added[:mark]
		return
	}
	if file, taken := elsewhere[item.Name]; taken {
		item.Action, item.Reason = Taken, file+" declares a server of this name"
		k.added = k.added[:mark]
		return
	}
	text := write(item.Name, server)
	settings.add(text, text)
	item.Action, item.Secrets = Take, names
	p.servers[item.Name] = server
}

// same reports whether two entries mean the same.
func same(a, b config.Server) bool {
	a.Line, b.Line, a.Title, b.Title = 0, 0, "", ""
	for _, s := range []*config.Server{&a, &b} {
		if len(s.Env) == 0 {
			s.Env = nil
		}
		if len(s.Headers) == 0 {
			s.Headers = nil
		}
		if len(s.Args) == 0 {
			s.Args = nil
		}
	}
	return reflect.DeepEqual(a, b)
}

// declared names the servers that other files of the workspace declare.
func declared(r Request, now time.Time) (map[string]string, error) {
	if r.Target != r.Workspace {
		return nil, nil
	}
	root, err := os.OpenRoot(r.Workspace)
	if err != nil {
		return nil, vakerr.New(vakerr.WorkspaceUnreadable, "the workspace cannot be opened").WithRemedy("name an existing folder with --workspace").WithCause(err)
	}
	defer root.Close()
	result, err := declare.NewScanner(declare.Options{}).Scan(root.FS(), now)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, d := range result.Declarations {
		if d.ID.Kind == capability.KindMCP && d.Source != configFile {
			all[d.ID.Name] = d.Source
		}
	}
	return all, nil
}

// finish checks that what would be written is read as it is meant, and renders it.
func (p *Plan) finish(edits ...edit) error {
	for _, e := range edits {
		if e.added == "" {
			continue
		}
		if e.name == configFile {
			got, problems := config.Parse(configFile, e.after())
			for name, want := range p.servers {
				if read, there := got.MCP[name]; !there || !same(read, want) {
					return vakerr.New(vakerr.ConfigInvalid, "%s would not be read back as it is meant (%s)", name, firstError(problems)).
						WithRemedy("declare it by hand")
				}
			}
		}
		p.Diff += fmt.Sprintf("--- %s\n", filepath.Join(e.folder, e.name))
		for line := range strings.Lines(e.shown) {
			p.Diff += "+" + line
		}
		p.edits = append(p.edits, e)
	}
	return nil
}

func firstError(problems []capability.Problem) string {
	for _, q := range problems {
		if q.Severity == capability.SeverityError {
			return q.Code
		}
	}
	return "a value differs"
}

// open reads a file that is to be written, which may be missing.
func open(folder, name string, mode fs.FileMode) (edit, error) {
	e := edit{folder: folder, name: name, mode: mode}
	text, err := rootfs.ReadFile(filepath.Join(folder, name), maxSource)
	switch {
	case err == nil:
		e.before, e.existed = text, true
	case !errors.Is(err, fs.ErrNotExist):
		return e, vakerr.New(vakerr.ConfigInvalid, "%s cannot be read", filepath.Join(folder, name)).WithRemedy("see that it is a readable file").WithCause(err)
	}
	return e, nil
}

func (e *edit) add(text, shown string) {
	if e.added == "" && len(e.before) > 0 && !bytes.HasSuffix(e.before, []byte("\n")) {
		e.added = "\n"
	}
	e.added += text
	e.shown += shown
}

func (e *edit) after() []byte { return slices.Concat(e.before, []byte(e.added)) }

// put writes a file in one step.
func put(folder, name string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return vakerr.New(vakerr.ConfigInvalid, "the folder %s cannot be made", folder).WithRemedy("see its permissions").WithCause(err)
	}
	root, err := rootfs.Open(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = root.WriteAtomic(name, text, mode)
	return err
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// strictName is a name as vak.toml allows it.
func strictName(id string) string {
	if config.CheckName(id) == nil {
		return id
	}
	name := strings.Trim(notInName.ReplaceAllString(id, "-"), "-.")
	name = name[:min(len(name), 64)]
	if config.CheckName(name) != nil {
		return ""
	}
	return name
}
