package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxText bounds one note, in bytes.
const maxText = 4096

// arguments holds the arguments of every tool; each reads its own.
type arguments struct {
	Text  string `json:"text"`
	Query string `json:"query"`
	ID    int    `json:"id"`
}

var tools = map[string]func(*store, arguments) (string, error){
	"note_add":    add,
	"note_list":   list,
	"note_search": search,
	"note_delete": remove,
}

// catalog is the answer to tools/list. Annotations are what policy goes by: a read-only tool needs no approval.
var catalog = []map[string]any{
	tool("note_add", "Keep a short note. Answers with the number it was filed under.",
		map[string]any{"text": property("string", "the note, at most 4096 bytes")},
		map[string]any{"readOnlyHint": false, "destructiveHint": false}),
	tool("note_list", "List all notes, oldest first.", map[string]any{}, map[string]any{"readOnlyHint": true}),
	tool("note_search", "List the notes that hold a text; upper and lower case are the same.",
		map[string]any{"query": property("string", "the text to look for; empty lists all")},
		map[string]any{"readOnlyHint": true}),
	tool("note_delete", "Remove a note by its number.",
		map[string]any{"id": property("integer", "the number that note_add or note_list gave")},
		map[string]any{"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true}),
}

// tool describes one tool; every property of it is required.
func tool(name, description string, properties, annotations map[string]any) map[string]any {
	required := make([]string, 0, len(properties))
	for p := range properties {
		required = append(required, p)
	}
	return map[string]any{
		"name":        name,
		"description": description,
		"annotations": annotations,
		"inputSchema": map[string]any{
			"type": "object", "properties": properties, "required": required, "additionalProperties": false,
		},
	}
}

func property(kind, description string) map[string]any {
	return map[string]any{"type": kind, "description": description}
}

func add(notes *store, args arguments) (string, error) {
	text := strings.TrimSpace(args.Text)
	if text == "" {
		return "", errors.New("the note is empty: give a text")
	}
	if len(text) > maxText {
		return "", fmt.Errorf("the note has %d bytes; %d are allowed", len(text), maxText)
	}
	n, err := notes.add(text, time.Now().UTC())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("kept as note %d", n.ID), nil
}

func list(notes *store, _ arguments) (string, error) { return search(notes, arguments{}) }

func search(notes *store, args arguments) (string, error) {
	all, err := notes.all()
	if err != nil {
		return "", err
	}
	found := []note{}
	for _, n := range all {
		if strings.Contains(strings.ToLower(n.Text), strings.ToLower(args.Query)) {
			found = append(found, n)
		}
	}
	text, err := json.Marshal(found)
	return string(text), err
}

func remove(notes *store, args arguments) (string, error) {
	if err := notes.remove(args.ID); err != nil {
		return "", err
	}
	return fmt.Sprintf("note %d is gone", args.ID), nil
}
