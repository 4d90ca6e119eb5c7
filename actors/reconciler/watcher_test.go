package reconciler

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A change in a watched folder leads to a pass long before the next tick, however it was made.
func TestWatchedFolder(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "a.txt")
	write := func(name string) {
		if err := os.WriteFile(name, []byte(time.Now().String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file)
	w := &workspace{watch: []string{folder, filepath.Join(folder, "not-there-yet")}}
	start(t, w, Config{Tick: time.Hour, Debounce: time.Millisecond, Watch: true})
	settled := w.settle(t, 0)
	for name, change := range map[string]func(){
		"in place":  func() { write(file) },
		"by rename": func() { write(file + ".new"); _ = os.Rename(file+".new", file) },
		"a folder":  func() { _ = os.Mkdir(filepath.Join(folder, "sub"), 0o700) },
		"removed":   func() { _ = os.Remove(file) },
	} {
		change()
		if now := w.settle(t, settled); now <= settled {
			t.Errorf("%s: no pass", name)
		} else {
			settled = now
		}
	}
}

// settle returns the number of passes when there are more than before and no more have come for a while.
func (w *workspace) settle(t *testing.T, before int) int {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	last, quiet := -1, 0
	for range 200 {
		<-ticker.C
		switch n := len(w.passes()); {
		case n != last:
			last, quiet = n, 0
		case n > before:
			if quiet++; quiet == 4 {
				return n
			}
		}
	}
	return last
}
