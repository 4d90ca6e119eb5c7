package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/capability"
)

// TestTerminalsObeyNobody: what comes from servers and files cannot move the cursor, hide text or turn it around.
func TestTerminalsObeyNobody(t *testing.T) {
	hostile := "a\x1b[2Jb\rc\u202ed\u200be\x07"
	var out bytes.Buffer
	table(&out, [][]string{{hostile, "two\nlines"}})
	printProblem(&out, capability.Problem{Severity: capability.SeverityError, Path: hostile, Message: hostile, Hint: hostile})
	announcement{Reports: []capability.Report{{Tenant: "t", Problems: []capability.Problem{{Path: hostile, Message: hostile}}}}}.print(&out)
	if strings.ContainsAny(out.String(), "\x1b\r\u202e\u200b\x07") {
		t.Errorf("%q", out.String())
	}
	if want := "a?[2Jb?c?d?e?  two lines\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("%q, want %q first", out.String(), want)
	}
}

// TestAnnouncementCanBePasted: the folder in the commands is one word of a shell.
func TestAnnouncementCanBePasted(t *testing.T) {
	for folder, want := range map[string]string{
		"/srv/ws": "--workspace /srv/ws\n", "/my files/it's": `--workspace '/my files/it'\''s'` + "\n",
	} {
		var out bytes.Buffer
		announcement{Workspace: folder}.print(&out)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", folder, out.String())
		}
	}
}

// TestAnnouncementNamesTheToken where a client needs one.
func TestAnnouncementNamesTheToken(t *testing.T) {
	for _, token := range []bool{false, true} {
		var out bytes.Buffer
		announcement{MCP: "http://h/mcp", Token: token}.print(&out)
		if got := strings.Contains(out.String(), `http://h/mcp --header "Authorization: Bearer TOKEN"`); got != token {
			t.Errorf("token %t: %s", token, out.String())
		}
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"1 capability": count(1, "capability"), "0 capabilities": count(0, "capability"), "1 problem": count(1, "problem"), "2 problems": count(2, "problem"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Millisecond: 1, 1500 * time.Microsecond: 2, time.Minute: 60_000} {
		if got := milliseconds(d); got != want {
			t.Errorf("%s is %d ms, want %d", d, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"one  two\nthree", 20, "one two three"}, {"äöüäöü", 4, "äöü…"}, {"", 3, ""}} {
		if got := short(c.text, c.most); got != c.want {
			t.Errorf("short(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}
