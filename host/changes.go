package host

import "sync"

// changes tells subscribers that a tenant published something. Signals are joined: a subscriber looks for itself what
// differs. One goroutine calls all of them, one after the other.
type changes struct {
	wake chan struct{} // one token: something was published; never closed
	quit chan struct{} // closed by close
	done chan struct{} // closed by run

	closing sync.Once
	mu      sync.Mutex // held while a subscriber is called, so that cancelling waits for it
	next    int
	all     map[int]func()
}

func newChanges() *changes {
	c := &changes{wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}), all: make(map[int]func())}
	go c.run()
	return c
}

func (c *changes) run() {
	defer close(c.done)
	for {
		select {
		case <-c.wake:
			c.tell()
		case <-c.quit:
			return
		}
	}
}

func (c *changes) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, changed := range c.all {
		changed()
	}
}

// signal never blocks.
func (c *changes) signal() {
	select {
	case c.wake <- struct{}{}:
	default: // a token is there already
	}
}

func (c *changes) subscribe(changed func()) (cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.next
	c.next++
	c.all[id] = changed
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, id)
	}
}

// close ends the goroutine and waits for it.
func (c *changes) close() {
	c.closing.Do(func() { close(c.quit) })
	<-c.done
}
