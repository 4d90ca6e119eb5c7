package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// talk sends each line to a server on a notes file of its own and returns the answers.
func talk(t *testing.T, path string, lines ...string) []map[string]any {
	t.Helper()
	var out strings.Builder
	if err := serve(&store{path: path}, strings.NewReader(strings.Join(lines, "\n")+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	var answers []map[string]any
	decoder := json.NewDecoder(strings.NewReader(out.String()))
	for decoder.More() {
		var a map[string]any
		if err := decoder.Decode(&a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	return answers
}

// text is the text of a tool's result.
func text(t *testing.T, answer map[string]any) string {
	t.Helper()
	result, ok := answer["result"].(map[string]any)
	if !ok {
		t.Fatalf("no result in %v", answer)
	}
	return result["content"].([]any)[0].(map[string]any)["text"].(string)
}

func toolCall(name, args string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args + `}}`
}

func TestHandshakeAndList(t *testing.T) {
	answers := talk(t, filepath.Join(t.TempDir(), "n"),
		`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if len(answers) != 2 || answers[0]["id"] != "a" {
		t.Fatalf("a notification was answered, or an id was lost: %v", answers)
	}
	listed := answers[1]["result"].(map[string]any)["tools"].([]any)
	if len(listed) != len(tools) {
		t.Fatalf("%d tools are listed and %d can be called", len(listed), len(tools))
	}
	for _, l := range listed {
		if name := l.(map[string]any)["name"].(string); tools[name] == nil {
			t.Errorf("%s is listed but cannot be called", name)
		}
	}
}

func TestNotesSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	talk(t, path, toolCall("note_add", `{"text":"Hello"}`), toolCall("note_add", `{"text":"again"}`))
	answers := talk(t, path, toolCall("note_search", `{"query":"hell"}`), toolCall("note_delete", `{"id":1}`), toolCall("note_list", `{}`))
	if found := text(t, answers[0]); !strings.Contains(found, "Hello") || strings.Contains(found, "again") {
		t.Errorf("search for hell found %s", found)
	}
	if left := text(t, answers[2]); strings.Contains(left, "Hello") || !strings.Contains(left, "again") {
		t.Errorf("after the deletion there is %s", left)
	}
}

func TestBadInputIsAnswered(t *testing.T) {
	answers := talk(t, filepath.Join(t.TempDir(), "n"),
		`{`, toolCall("nope", `{}`), toolCall("note_add", `{"text":" "}`), toolCall("note_add", `{"text":7}`), `{"id":5,"method":"x"}`)
	for i, want := range []string{"no JSON-RPC", "there is no tool", "the note is empty", "fit the tool", "not known"} {
		if got, _ := json.Marshal(answers[i]); !strings.Contains(string(got), want) {
			t.Errorf("answer %d is %s, want %q in it", i+1, got, want)
		}
	}
}
