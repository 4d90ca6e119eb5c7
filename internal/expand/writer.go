package expand

import (
	"path"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// writer makes the parts of one plan.
type writer struct {
	invocation capability.Invocation
	facts      Facts
	skillDir   string // absolute; empty: the document is no skill
	arguments  string // as typed
	words      []string
	named      map[string]string
	typed      string // the whole prompt; of a Gemini command

	parts []Part
	shown strings.Builder // text that is no part yet
	asked bool            // an argument was put in
	size  int             // bytes of all texts
	files int
	runs  int
}

func newWriter(v capability.Invocation, arguments string, f Facts) *writer {
	w := &writer{invocation: v, facts: f, arguments: arguments, words: split(arguments), named: make(map[string]string, len(v.Arguments))}
	for i, name := range v.Arguments {
		w.named[name] = ""
		if i < len(w.words) {
			w.named[name] = w.words[i]
		}
	}
	return w
}

// full reports whether there is more than a plan may hold. The rest is not worth the time then.
func (w *writer) full() bool { return w.size > MaxBytes }

// text adds what is shown as it is.
func (w *writer) text(s string) {
	w.size += len(s)
	w.shown.WriteString(s)
}

// flush makes a part of the text so far.
func (w *writer) flush() {
	if w.shown.Len() > 0 {
		w.parts = append(w.parts, Part{Kind: Text, Text: w.shown.String()})
		w.shown.Reset()
	}
}

func (w *writer) add(p Part) {
	w.flush()
	w.size += len(p.Text) + len(p.Path)
	switch p.Kind {
	case Command:
		w.runs++
	case File, Mention:
		w.files++
	case Text, Listing:
	}
	w.parts = append(w.parts, p)
}

// appendArguments adds arguments that the body did not ask for.
func (w *writer) appendArguments() {
	if w.asked || w.arguments == "" || w.full() {
		return
	}
	body := strings.TrimRight(w.shown.String(), "\n")
	w.shown.Reset()
	w.shown.WriteString(body)
	if w.typed != "" {
		w.text("\n\n" + w.typed)
		return
	}
	w.text("\n\nARGUMENTS: " + w.arguments)
}

func (w *writer) plan(id capability.ID) (Plan, error) {
	w.flush()
	p := Plan{ID: id, Invocation: w.invocation, Parts: w.parts}
	switch {
	case w.full():
		return p, tooLarge(id)
	case w.runs > maxCommands:
		return p, vakerr.New(vakerr.TooLarge, "%s runs more than %d commands", id, maxCommands).WithRemedy("put them into one script")
	case w.files > maxFiles:
		return p, vakerr.New(vakerr.TooLarge, "%s names more than %d files", id, maxFiles).WithRemedy("name fewer, and let the model read the rest")
	}
	return p, nil
}

// absolute is a folder of the workspace by its absolute path.
func absolute(project, folder string) string {
	if path.IsAbs(folder) || project == "" {
		return folder
	}
	return path.Join(project, folder)
}
