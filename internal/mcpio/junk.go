package mcpio

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

const (
	junkKept  = 20          // lines
	junkShown = 200         // bytes of each of them
	junkSpan  = time.Minute // over which the budget counts
)

// JunkStats counts what a server printed where only frames belong.
type JunkStats struct {
	Lines     uint64   // lines that were no frames, and were dropped
	Bytes     uint64   // of those, and of what was dropped of oversized frames
	Oversized uint64   // frames over Limits.Frame
	Last      []string // the last 20 lines, cut to 200 bytes, oldest first
}

// junkLog counts junk and holds it against a budget.
type junkLog struct {
	budget int // bytes per junkSpan
	now    func() time.Time
	redact *Redactor

	mu    sync.Mutex // guards the fields below
	stats JunkStats
	since time.Time // begin of the current span
	spent int       // bytes in it
}

// charge counts n bytes of junk and reports whether the budget still holds.
func (j *junkLog) charge(n int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.Bytes += uint64(n)
	if now := j.now(); now.Sub(j.since) >= junkSpan {
		j.since, j.spent = now, 0
	}
	j.spent += n
	return j.spent <= j.budget
}

// line records a dropped line; its bytes are charged separately.
func (j *junkLog) line(text []byte) {
	text = bytes.TrimSpace(text)
	// Enough is kept for a secret that begins in the part shown to be recognised as a whole.
	shown := j.redact.String(string(text[:min(len(text), junkShown+j.redact.longest())]))
	shown = strings.ToValidUTF8(clip(shown, junkShown), "?")
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.Lines++
	if len(j.stats.Last) == junkKept {
		j.stats.Last = append(j.stats.Last[:0], j.stats.Last[1:]...)
	}
	j.stats.Last = append(j.stats.Last, shown)
}

func (j *junkLog) oversized() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.Oversized++
}

func (j *junkLog) snapshot() JunkStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	s.Last = append([]string(nil), s.Last...)
	return s
}
