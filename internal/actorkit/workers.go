package actorkit

import "sync"

// workers runs mailboxes on reused goroutines: a goroutine that is reused keeps its grown stack, which makes a round trip
// several times cheaper than a fresh goroutine per run. The pool is elastic: when no worker is idle another one starts,
// so an actor that blocks against the rules harms only itself.
type workers struct {
	mu     sync.Mutex
	idle   []chan *mailbox // parked workers, each waits on its own channel of capacity 1; closed by close
	closed bool
	all    sync.WaitGroup
}

// maxIdle is how many workers stay parked; those beyond end when they run out of work.
const maxIdle = 64

// schedule has m run soon on some worker. Once the pool is closed it runs in the caller: then every actor has stopped,
// and what is left in a mailbox are lifecycle messages nobody acts upon.
func (w *workers) schedule(m *mailbox) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		m.run()
		return
	}
	if last := len(w.idle) - 1; last >= 0 {
		parked := w.idle[last]
		w.idle = w.idle[:last]
		w.mu.Unlock()
		parked <- m
		return
	}
	w.all.Add(1)
	w.mu.Unlock()
	go w.work(m)
}

func (w *workers) work(m *mailbox) {
	defer w.all.Done()
	called := make(chan *mailbox, 1)
	for m != nil {
		m.run()
		m = w.park(called)
	}
}

// park waits for the next mailbox; nil ends the worker.
func (w *workers) park(called chan *mailbox) *mailbox {
	w.mu.Lock()
	if w.closed || len(w.idle) >= maxIdle {
		w.mu.Unlock()
		return nil
	}
	w.idle = append(w.idle, called)
	w.mu.Unlock()
	return <-called
}

// close ends all workers and waits for them. A worker must not call it.
func (w *workers) close() {
	w.mu.Lock()
	w.closed = true
	for _, parked := range w.idle {
		close(parked)
	}
	w.idle = nil
	w.mu.Unlock()
	w.all.Wait()
}
