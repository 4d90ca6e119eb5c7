package childproc

import (
	"runtime"
	"sync"
)

// starter runs every fork on one operating-system thread. The parent-death signal fires when the forking *thread* ends,
// and the Go runtime ends threads as it likes; so the thread is locked, and it lives while there are users, which are the
// children not yet reaped. With no child there is no thread and no goroutine.
type starter struct {
	mu    sync.Mutex // guards the fields below
	users int
	jobs  chan func() // closed by the last user; only users send
}

var forks starter

// acquire keeps the thread alive until release.
func (s *starter) acquire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users++; s.users == 1 {
		s.jobs = make(chan func())
		go runLocked(s.jobs)
	}
}

// do runs job on the thread and returns when it has returned. The caller holds an acquire.
func (s *starter) do(job func()) {
	s.mu.Lock()
	jobs := s.jobs
	s.mu.Unlock()
	done := make(chan struct{})
	jobs <- func() { defer close(done); job() }
	<-done
}

func (s *starter) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		close(s.jobs)
		s.jobs = nil
	}
}

// runLocked never unlocks: the thread, which no child depends on any more, ends with the goroutine.
func runLocked(jobs <-chan func()) {
	runtime.LockOSThread()
	for job := range jobs {
		job()
	}
}
