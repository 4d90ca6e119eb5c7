package reconciler

import (
	"context"
	"errors"
	"io/fs"

	"github.com/fsnotify/fsnotify"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/protocol"
)

// maxWatches bounds how many folders are watched; a workspace with more is polled beyond them, by the ticker.
const maxWatches = 4096

// watchFailed says that the file system cannot be watched any more. The loop goes on with a faster tick.
type watchFailed struct{ reason string }

// watcher turns file events into hints. It watches folders, never files: an editor that saves by renaming would take a
// watched file away. Losing events is allowed.
type watcher struct {
	folders chan []string // the latest wish; capacity 1
}

// startWatcher runs until the actor stops.
func startWatcher(c *actorkit.Context) *watcher {
	w := &watcher{folders: make(chan []string, 1)}
	self := c.Self()
	c.Go(func(ctx context.Context) any {
		if err := w.run(ctx, self); err != nil {
			return watchFailed{err.Error()}
		}
		return nil
	})
	return w
}

// watch replaces the watched folders. It never blocks.
func (w *watcher) watch(folders []string) {
	select {
	case <-w.folders: // an older wish nobody took
	default:
	}
	w.folders <- folders // the actor is the only sender, so there is room
}

func (w *watcher) run(ctx context.Context, self actorkit.Ref) error {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer func() { _ = events.Close() }()
	watched := make(map[string]struct{})
	for {
		select {
		case <-ctx.Done():
			return nil
		case folders := <-w.folders:
			if added, err := adjust(events, watched, folders); err != nil {
				return err
			} else if added {
				// What changed between the pass and the new watch was seen by neither.
				_ = self.Tell(protocol.Hint{Reason: "a folder is watched now"})
			}
		case _, open := <-events.Events:
			if !open {
				return fsnotify.ErrClosed
			}
			_ = self.Tell(protocol.Hint{Reason: "a file changed"})
		case err, open := <-events.Errors:
			if !open {
				return fsnotify.ErrClosed
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return err
			}
			_ = self.Tell(protocol.Hint{Reason: "file events were lost"})
		}
	}
}

// adjust adds and removes watches so that watched becomes folders. A folder that is gone is no error: the next pass will
// not name it.
func adjust(events *fsnotify.Watcher, watched map[string]struct{}, folders []string) (added bool, err error) {
	folders = folders[:min(len(folders), maxWatches)]
	wanted := make(map[string]struct{}, len(folders))
	for _, f := range folders {
		wanted[f] = struct{}{}
	}
	for f := range watched {
		if _, still := wanted[f]; !still {
			_ = events.Remove(f)
			delete(watched, f)
		}
	}
	for f := range wanted {
		if _, already := watched[f]; already {
			continue
		}
		switch err := events.Add(f); {
		case err == nil:
			watched[f] = struct{}{}
			added = true
		case !missing(err):
			return added, err
		}
	}
	return added, nil
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}
