package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// Events lists the lifecycle events a hook may name; the spelling with _ is accepted too.
func Events() []string {
	var all []string
	for _, e := range hook.Events() {
		all = append(all, string(e))
	}
	return all
}

const (
	defaultHookTimeout = 10_000  // ms
	maxHookTimeout     = 600_000 // ms
)

// readHooks reads [[hooks]]. An entry that cannot be read is dropped where it is advisory; where it is, or may have
// been, fail-closed it stays as a refusal, because nobody can say what it was meant to stop.
func readHooks(top *section) []Hook {
	v, written := top.take("hooks")
	if !written {
		return nil
	}
	list, isList := v.([]any)
	if !isList {
		top.wrongType("hooks", v, "a list of tables, each written as [[hooks]]")
		return []Hook{refusingHook(0, top.line("hooks"), "hooks cannot be read: they are no list of [[hooks]] tables")}
	}
	var hooks []Hook
	ids := map[string]Hook{}
	for i, item := range list {
		if i == maxHooks {
			top.fail("config_too_many", "hooks", fmt.Sprintf("more than %d hooks", maxHooks), "every tool call is blocked until some are removed")
			return append(hooks, refusingHook(i, top.line("hooks"), fmt.Sprintf("there are more than %d hooks", maxHooks)))
		}
		hook, ok := readHook(top, i, item)
		if !ok {
			continue
		}
		if hook.Enabled && !settleHook(ids, &hook) {
			top.doc.report(capability.SeverityWarning, "hook_duplicate", hook.Line,
				fmt.Sprintf("hook %s is written twice; it runs once", hook.Name), "remove one of the entries")
			continue
		}
		hooks = append(hooks, hook)
	}
	return hooks
}

func readHook(top *section, i int, item any) (Hook, bool) {
	values, isTable := item.(map[string]any)
	if !isTable {
		top.wrongType("hooks", item, "a list of tables, each written as [[hooks]]")
		return refusingHook(i, top.line("hooks"), fmt.Sprintf("hook %d cannot be read: it is no table", i+1)), true
	}
	s := top.below("", values, "hooks", ElementKey(i))
	hook := Hook{Line: s.line()}
	hook.Enabled = s.flag("enabled", true)
	hook.FailureMode = capability.FailureMode(s.oneOf("failure_mode", string(capability.FailOpen),
		string(capability.FailOpen), string(capability.FailClosed)))
	closed := hook.FailureMode == capability.FailClosed || s.bad
	hook.Event = s.event()
	hook.Match = s.text("match", "")
	hook.Command = s.text("command", "")
	hook.Timeout = time.Duration(s.number("timeout_ms", defaultHookTimeout, maxHookTimeout)) * time.Millisecond
	s.close()
	if strings.TrimSpace(hook.Command) == "" && !s.bad {
		s.fail("config_value", "command", "no command "+s.label(), `add command = "./hooks/check.sh"`)
	}
	hook.Name = hook.Event + "/" + hook.Command
	switch {
	case !s.bad, !hook.Enabled:
		s.reportMatch(hook)
		return hook, true
	case !closed:
		top.doc.report(capability.SeverityWarning, "hook_dropped", hook.Line,
			fmt.Sprintf("hook %d is left out: its entry cannot be read, and it is advisory", i+1), "repair the entry")
		return Hook{}, false
	}
	refusal := refusingHook(i, hook.Line, fmt.Sprintf("hook %d (%s:%d) is fail-closed and cannot be read", i+1, top.doc.path, hook.Line))
	if hook.Command != "" {
		refusal.Name, refusal.Command = hook.Name, hook.Command
	}
	top.doc.report(capability.SeverityError, "hook_refuses", hook.Line, refusal.Refusal+": every tool call is blocked", "repair or remove the entry")
	return refusal, true
}

// reportMatch names a match that cannot be read. The hook is asked about every call then, since a guard that runs too
// often does less harm than one that never does.
func (s *section) reportMatch(hook Hook) {
	if hook.Match == "" || !hook.Enabled {
		return
	}
	if _, err := policy.ParsePattern(hook.Match); err != nil {
		s.doc.report(capability.SeverityError, "hook_match", s.line("match"), fmt.Sprintf("match %s: %v", s.label(), err),
			"write Tool or Tool(glob), for instance write(src/**); until then the hook is asked about every call")
	}
}

// event reads the event of a hook in either spelling.
func (s *section) event() string {
	if text, isText := s.values["event"].(string); isText {
		s.values["event"] = strings.ReplaceAll(text, "_", "-")
	} else if _, written := s.values["event"]; !written {
		s.known = append(s.known, "event")
		s.fail("config_value", "", "no event "+s.label(), "add event = one of "+strings.Join(Events(), ", "))
		return "pre-tool-use"
	}
	return s.oneOf("event", "pre-tool-use", Events()...)
}

// refusingHook stands for an entry that cannot be read.
func refusingHook(i, line int, reason string) Hook {
	const event = "pre-tool-use"
	return Hook{
		Name: fmt.Sprintf("%s/hook-%d", event, i+1), Event: event, Timeout: defaultHookTimeout * time.Millisecond,
		FailureMode: capability.FailClosed, Enabled: true, Refusal: reason, Line: line,
	}
}

// settleHook gives the hook an id of its own. The same command may guard several tools, each with its entry: from the
// second on the id carries a number, so that none is lost. It reports false for an entry that says the same again.
func settleHook(ids map[string]Hook, hook *Hook) bool {
	base := hook.Name
	for n := 2; ; n++ {
		other, taken := ids[hook.Name]
		if !taken {
			ids[hook.Name] = *hook
			return true
		}
		same := *hook
		same.Name, same.Line = other.Name, other.Line
		if same == other {
			return false
		}
		hook.Name = fmt.Sprintf("%s#%d", base, n)
	}
}

// EnabledHooks returns the hooks that run, in order of the file.
func (c Config) EnabledHooks() []Hook {
	return slices.DeleteFunc(slices.Clone(c.Hooks), func(h Hook) bool { return !h.Enabled })
}
