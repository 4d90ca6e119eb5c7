package actorkit

import "sync"

// task is what a worker runs: the messages of an actor, or an effect.
type task interface{ run() }

// workers runs tasks on reused goroutines: a goroutine that is reused keeps its grown stack, which makes a round trip
// several times cheaper than a fresh goroutine per run. The pool is elastic: when no worker is idle another one starts,
// so effects may block, and an actor that blocks against the rules harms only itself.
type workers struct {
	mu     sync.Mutex
	idle   []chan task // parked workers, each waits on its own channel of capacity 1; closed by close
	closed bool
	all    sync.WaitGroup
}

// maxIdle is how many workers stay parked; those beyond end when they run out of work.
const maxIdle = 64

// schedule has t run soon on some worker. Once the pool is closed it runs in the caller: then every actor has stopped,
// and what is left in a mailbox are lifecycle messages nobody acts upon.
func (w *workers) schedule(t task) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		t.run()
		return
	}
	if last := len(w.idle) - 1; last >= 0 {
		parked := w.idle[last]
		w.idle = w.idle[:last]
		w.mu.Unlock()
		parked <- t
		return
	}
	w.all.Add(1)
	w.mu.Unlock()
	go w.work(t)
}

func (w *workers) work(t task) {
	defer w.all.Done()
	called := make(chan task, 1)
	for t != nil {
		t.run()
		t = w.park(called)
	}
}

// park waits for the next task; nil ends the worker.
func (w *workers) park(called chan task) task {
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
