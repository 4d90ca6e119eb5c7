package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// note is one line of the file.
type note struct {
	ID   int       `json:"id"`
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// store keeps the notes in a file and reads it again for every call: it is small, and a person may edit it. It is used
// by one goroutine.
type store struct{ path string }

func (s *store) all() ([]note, error) {
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the notes: %w", err)
	}
	var notes []note
	line := 0
	for raw := range bytes.Lines(data) {
		line++
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		var n note
		if err := json.Unmarshal(raw, &n); err != nil {
			return nil, fmt.Errorf("line %d of %s is no note: repair or remove it", line, s.path)
		}
		notes = append(notes, n)
	}
	return notes, nil
}

func (s *store) add(text string, at time.Time) (note, error) {
	notes, err := s.all()
	if err != nil {
		return note{}, err
	}
	n := note{ID: 1, At: at, Text: text}
	if len(notes) > 0 {
		n.ID = notes[len(notes)-1].ID + 1
	}
	return n, s.write(append(notes, n))
}

func (s *store) remove(id int) error {
	notes, err := s.all()
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(notes, func(n note) bool { return n.ID == id })
	return s.write(kept)
}

// write replaces the file in one step, so that a reader and a crash see the old notes or the new ones.
func (s *store) write(notes []note) error {
	var data bytes.Buffer
	lines := json.NewEncoder(&data)
	for _, n := range notes {
		if err := lines.Encode(n); err != nil {
			return err
		}
	}
	next := s.path + ".new"
	if err := os.WriteFile(next, data.Bytes(), 0o600); err != nil {
		return fmt.Errorf("cannot keep the notes: %w", err)
	}
	return os.Rename(next, s.path)
}
