package plugin

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/vak-actors/vak-actors/internal/config"
)

var optionKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// maxOptions bounds the options of a plugin.
const maxOptions = 64

// options reads an object of options by their keys.
func (r *reader) options(k member) []Option {
	var all []Option
	for _, o := range r.object(k) {
		if !optionKey.MatchString(o.name) || len(all) == maxOptions {
			r.component("plugin_option", o.line, fmt.Sprintf("the option %s is left out: its key cannot be used, or there are more than %d", quoted(o.name), maxOptions), "use letters, digits and _")
			continue
		}
		all = append(all, r.option(o))
	}
	return all
}

func (r *reader) option(k member) Option {
	o := Option{Key: k.name, Type: "string"}
	for _, x := range r.object(k) {
		switch x.name {
		case "type":
			o.Type = r.text(x)
		case "title":
			o.Title = r.text(x)
		case "description":
			o.Description = r.text(x)
		case "sensitive":
			o.Sensitive = r.truth(x)
		case "required":
			o.Required = r.truth(x)
		case "multiple":
			o.Multiple = r.truth(x)
		case "default":
			o.Default, o.hasDefault = scalar(x.value), true
		case "min", "max", "enum", "choices", "pattern":
		default:
			r.warn("plugin_unknown_key", x.line, fmt.Sprintf("the option %s has the unknown key %s", quoted(k.name), quoted(x.name)), "remove it, or correct its spelling")
		}
	}
	switch o.Type {
	case "string", "number", "boolean", "directory", "file":
	default:
		r.component("plugin_option", k.line, fmt.Sprintf("the option %s has the unknown type %s", quoted(k.name), quoted(o.Type)), "write string, number, boolean, directory or file")
		o.Type = "string"
	}
	if o.Sensitive && o.hasDefault {
		r.warn("plugin_option", k.line, fmt.Sprintf("the option %s is sensitive and has a default, which is ignored", quoted(k.name)), "remove the default")
		o.Default, o.hasDefault = "", false
	}
	return o
}

// scalar is a value as a text: a text itself, other values as JSON, lists joined by commas.
func scalar(v hujson.Value) string {
	switch x := v.Value.(type) {
	case hujson.Literal:
		if x.Kind() == '"' {
			return x.String()
		}
		return string(x)
	case *hujson.Array:
		var all []string
		for _, e := range x.Elements {
			all = append(all, scalar(e))
		}
		return strings.Join(all, ",")
	}
	return string(raw(v))
}

// CheckValue says why a value does not fit an option; empty for one that does.
func (o Option) CheckValue(value string) string {
	switch {
	case o.Sensitive:
		return "it is sensitive: its value is no setting"
	case len(value) > 4096 || strings.ContainsRune(value, 0):
		return "it has more than 4096 bytes, or a NUL byte"
	case o.Type == "boolean" && value != "true" && value != "false":
		return "write true or false"
	case o.Type == "number":
		var n json.Number
		if json.Unmarshal([]byte(value), &n) != nil || strings.HasPrefix(value, `"`) {
			return "write a number"
		}
	}
	return ""
}

// SecretName is the placeholder by which a sensitive option of a plugin is looked up among the operator's secrets.
func SecretName(plugin, key string) string {
	return "VAK_PLUGIN_" + config.EnvironmentName(plugin) + "_" + config.EnvironmentName(key)
}
