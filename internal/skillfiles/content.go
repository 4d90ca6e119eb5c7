package skillfiles

import (
	"mime"
	"path"
	"strings"
	"unicode/utf8"
)

// content is the text of a file, or its bytes where it is none.
func content(uri, rel string, text []byte) Content {
	c := Content{URI: uri, MIME: mimeOf(rel, text)}
	if utf8.Valid(text) {
		c.Text = string(text)
	} else {
		c.Blob = text
	}
	return c
}

// mimeOf is the type of a file by its name, or else by what is known of its text.
func mimeOf(name string, text []byte) string {
	if strings.EqualFold(path.Ext(name), ".md") {
		return "text/markdown"
	}
	if known, _, err := mime.ParseMediaType(mime.TypeByExtension(path.Ext(name))); err == nil && known != "" {
		return known
	}
	if utf8.Valid(text) {
		return "text/plain"
	}
	return "application/octet-stream"
}

// Resource is the SKILL.md of a skill as resources/list has it.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description"`
	MIME        string `json:"mimeType"`
	Size        int64  `json:"size"`
}

// Resource is the entry's own.
func (e Entry) Resource() Resource {
	r := Resource{URI: e.URI, MIME: mimeOf(manifest, nil), Size: int64(len(e.text))}
	r.Name, _ = e.Frontmatter["name"].(string)
	r.Description, _ = e.Frontmatter["description"].(string)
	return r
}
