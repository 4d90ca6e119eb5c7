package plugin

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

// Item is one thing that a plugin brings, as an operator is shown it before consenting.
type Item struct {
	ID   string `json:"id"`   // qualified
	Text string `json:"text"` // what runs, is reached or is read
	Sum  string `json:"sum"`  // digest of everything about it; of the place where the plugin lies nothing
}

// Brings is what a plugin brings, in order of ids.
type Brings []Item

// Describe lists what was read in a plugin's folder. The result depends on the plugin's content and the reader alone, not
// on where it is installed.
func (m Manifest) Describe(read []capability.Declaration) Brings {
	all := make(Brings, 0, len(read))
	for _, d := range read {
		if d.ID.Kind == capability.KindMCP && m.Refused[d.ID.Name] {
			continue
		}
		all = append(all, Item{Qualified(m.Name, d.ID).String(), describe(d), itemSum(d)})
	}
	for _, o := range m.Options {
		sum, _ := json.Marshal(o)
		all = append(all, Item{"option:" + o.Key, optionText(o), short(sum)})
	}
	slices.SortFunc(all, func(a, b Item) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Sum, b.Sum)) })
	return all
}

func optionText(o Option) string {
	text := o.Type
	if o.Sensitive {
		text = "secret " + text
	}
	if o.Required {
		text += ", required"
	}
	if o.Default != "" {
		text += ", default " + o.Default
	}
	return text
}

// describe says what a declaration does, with every command line and address in full.
func describe(d capability.Declaration) string {
	switch c := d.Config.(type) {
	case *capability.Server:
		if c.Transport != capability.TransportStdio {
			return "connects to " + c.URL + names(" with the headers ", c.Headers)
		}
		return "runs " + strings.Join(append([]string{c.Command}, c.Args...), " ") + names(" with ", c.Env)
	case *capability.Hook:
		text := "at " + c.Event
		if c.Match != "" {
			text += " of " + c.Match
		}
		switch {
		case c.Type == capability.HookHTTP:
			text += " posts to " + c.URL
		case c.Command != "":
			text += " runs " + strings.Join(append([]string{c.Command}, c.Args...), " ")
		}
		if c.Idle != "" {
			text += " (never: " + c.Idle + ")"
		}
		return text
	}
	return d.Summary
}

func names(before string, of map[string]string) string {
	if len(of) == 0 {
		return ""
	}
	keys := make([]string, 0, len(of))
	for k := range of {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return before + strings.Join(keys, ", ")
}

// itemSum covers everything about a declaration but where it lies.
func itemSum(d capability.Declaration) string {
	config := d.Config
	switch c := config.(type) {
	case *capability.Server:
		s := *c
		s.SecretDigest, s.Observation = "", nil
		config = &s
	case *capability.Hook:
		h := *c
		h.Root = capability.Folder{}
		config = &h
	case *capability.Skill:
		s := *c
		s.Root = capability.Folder{}
		config = &s
	case *capability.Command:
		k := *c
		k.Root = capability.Folder{}
		config = &k
	}
	text, err := json.Marshal(config)
	if err != nil {
		text = fmt.Appendf(nil, "%v", err)
	}
	return short(fmt.Appendf(nil, "%s\n%s\n%s\n%s", d.Summary, d.Digest, strings.Join(domainTexts(d.Serves), " "), text))
}

func domainTexts(all capability.Domains) []string {
	texts := make([]string, len(all))
	for i, d := range all {
		texts[i] = string(d)
	}
	return texts
}

func short(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Digest is one word for all that a plugin brings.
func (b Brings) Digest() string {
	h := sha256.New()
	for _, i := range b {
		fmt.Fprintf(h, "%q %q\n", i.ID, i.Sum)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Change is one difference between what two versions bring.
type Change struct {
	ID  string `json:"id"`
	Old string `json:"old,omitempty"` // empty: it is new
	New string `json:"new,omitempty"` // empty: it is gone
}

// Diff lists what differs, in order of ids.
func Diff(before, after Brings) []Change {
	var all []Change
	for _, i := range before {
		at := slices.IndexFunc(after, func(x Item) bool { return x.ID == i.ID })
		switch {
		case at < 0:
			all = append(all, Change{i.ID, i.Text, ""})
		case after[at].Sum != i.Sum:
			all = append(all, Change{i.ID, i.Text, after[at].Text})
		}
	}
	for _, i := range after {
		if !slices.ContainsFunc(before, func(x Item) bool { return x.ID == i.ID }) {
			all = append(all, Change{i.ID, "", i.Text})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Consent is the operator's word on exactly one content, in one scope, that brings exactly this.
type Consent struct {
	Digest string `json:"digest"` // of the content
	Scope  string `json:"scope"`
	Brings string `json:"brings"` // digest of what it brings
}

// Covers reports whether the consent was given for this.
func (c *Consent) Covers(digest, scope, brings string) bool {
	return c != nil && digest != "" && *c == Consent{digest, scope, brings}
}
