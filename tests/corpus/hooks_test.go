package corpus

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/hook"
)

// hookDetail is what a row says of a handler.
type hookDetail struct {
	Type    string      `json:"type"`
	Matcher string      `json:"matcher"`
	Match   string      `json:"match"`
	Timeout json.Number `json:"timeout"`
	CmdSHA  string      `json:"cmd_sha"`
	Events  []string    `json:"events"`
}

func TestHooks(t *testing.T) {
	dir := corpusDir(t)
	if dir == "" {
		return
	}
	c := newTally()
	for _, group := range rows(t, dir, "hooks") {
		raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(group[0].file)))
		if err != nil {
			t.Fatal(err)
		}
		got := declare.ReadHooks(group[0].file, raw)
		taken := 0
		for _, r := range group {
			err := handler(r, got)
			if err == nil && r.expect != "file" && r.verdict != "error" {
				taken++
			}
			c.count(r, err)
		}
		if taken != len(got.Hooks) {
			t.Errorf("%s: %d hooks are read, the table has %d", group[0].file, len(got.Hooks), taken)
		}
	}
	c.exact(t, "hooks")
}

// handler compares one handler, or the file as a whole, with its row.
func handler(r row, got declare.HookFile) error {
	failures := slices.DeleteFunc(slices.Clone(got.Problems), func(p capability.Problem) bool { return p.Severity != capability.SeverityError })
	if r.expect == "file" {
		if got.Broken != (r.verdict == "error") {
			return fmt.Errorf("broken %t: %v", got.Broken, failures)
		}
		return nil
	}
	event, matcher, group, index := address(r.expect)
	i := slices.IndexFunc(got.Hooks, func(e declare.HookEntry) bool {
		return e.Hook.Event == event && e.Group == group && e.Index == index
	})
	if r.verdict == "error" {
		told := slices.ContainsFunc(failures, func(p capability.Problem) bool { return strings.Contains(p.Message, event) && p.Line > 0 })
		if i >= 0 && group >= 0 || !told {
			return fmt.Errorf("read %t, told %t: %v", i >= 0, told, failures)
		}
		return nil
	}
	if i < 0 {
		return fmt.Errorf("not read: %v", got.Problems)
	}
	h := got.Hooks[i].Hook
	if r.verdict == "policy" { // another program's: read in its dialect, or said to be idle
		if got.Dialect != capability.DialectCursor {
			return fmt.Errorf("read in the dialect %q", got.Dialect)
		}
		return nil
	}
	var d hookDetail
	if err := json.Unmarshal(r.raw, &d); err != nil {
		return err
	}
	timeout, _ := d.Timeout.Float64()
	wanted := min(time.Duration(timeout*float64(time.Second)), 10*time.Minute)
	warned := func(code string) bool {
		return slices.ContainsFunc(got.Problems, func(p capability.Problem) bool { return p.Code == code })
	}
	switch {
	case string(h.Type) != d.Type:
		return fmt.Errorf("type %s", h.Type)
	case strings.Trim(h.Match, "*") != strings.Trim(matcher, "*") && h.Match != matcher || d.Match != string(hook.MatchingOf(h.Match)):
		return fmt.Errorf("matcher %q is %s", h.Match, hook.MatchingOf(h.Match))
	case d.Timeout != "" && h.Timeout != wanted:
		return fmt.Errorf("timeout %s", h.Timeout)
	case d.CmdSHA != "" && sha(h.Command) != d.CmdSHA && sha(strings.TrimSpace(h.Command)) != d.CmdSHA:
		return fmt.Errorf("command %.60q", h.Command)
	case strings.Contains(r.reason, "matcher ") && !warned("hook_matcher"), strings.Contains(r.reason, "timeout ") && !warned("hook_timeout"):
		return fmt.Errorf("no warning: %v", got.Problems)
	}
	return nil
}

// address reads Event[matcher]#group.index, or Event#index, or Event alone.
func address(expect string) (event, matcher string, group, index int) {
	text := strings.TrimPrefix(expect, "hook:")
	at := strings.LastIndex(text, "#")
	if at < 0 {
		return text, "", -1, 0
	}
	first, second, _ := strings.Cut(text[at+1:], ".")
	group, _ = strconv.Atoi(first)
	index, _ = strconv.Atoi(second)
	event = text[:at]
	if open := strings.Index(event, "["); open >= 0 {
		matcher = strings.TrimSuffix(event[open+1:], "]")
		event = event[:open]
	}
	return event, matcher, group, index
}
