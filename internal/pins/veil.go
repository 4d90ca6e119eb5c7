package pins

import (
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
)

// veiled hides the secrets of a command line behind their digests, so that a change of one is still a change.
func veiled(words []string) []string {
	if words == nil {
		return nil
	}
	all := config.MaskArgs(words)
	for i := range all {
		if all[i] != words[i] {
			all[i] += mark(words[i])
		}
	}
	return all
}

func veiledURL(text string) string {
	if masked := config.MaskURL(text); masked != text {
		return masked + mark(text)
	}
	return text
}

// veiledValues does it for named values.
func veiledValues(values map[string]string) map[string]string {
	if values == nil {
		return nil
	}
	all := make(map[string]string, len(values))
	for name, value := range values {
		_, all[name], _ = strings.Cut(veiled([]string{name + "=" + value})[0], "=")
	}
	return all
}

// mark tells two secrets apart without telling them.
func mark(secret string) string { return "#" + capability.ContentDigest([]byte(secret))[:12] }
