package gateway

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	keptEvents  = 64      // of a stream, the newest
	keptStreams = 8       // of a session, whose clients left before the end; the newest
	keptBytes   = 4 << 20 // of all of those together
)

// event is one frame on a stream. Sequence numbers begin with 1.
type event struct {
	sequence uint64
	frame    []byte
}

// stream is the events of one POST, or those that belong to no request, for a client to read, and to resume reading.
type stream struct {
	number uint64 // within the session; the standing stream is 0

	mu     sync.Mutex // guards what follows
	events []event    // kept, oldest first
	last   uint64     // sequence of the newest event
	read   uint64     // sequence up to which events were written to a client
	ended  bool
	wake   chan struct{} // closed by send and end, for the reader that waits, then another
	reader chan struct{} // closed when another reader takes over; nil without a reader
}

func newStream(number uint64) *stream { return &stream{number: number, wake: make(chan struct{})} }

// send appends a frame. It does not block: of what nobody reads, the newest events are kept. An equal frame that is still
// unread is not repeated.
func (st *stream) send(frame []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended || st.waitsLocked(frame) {
		return
	}
	st.last++
	st.events = append(st.events, event{st.last, frame})
	if len(st.events) > keptEvents {
		st.events = slices.Delete(st.events, 0, len(st.events)-keptEvents)
	}
	st.wakeLocked()
}

func (st *stream) waitsLocked(frame []byte) bool {
	n := len(st.events)
	return n > 0 && st.events[n-1].sequence > st.read && string(st.events[n-1].frame) == string(frame)
}

// write and offer implement outlet.
func (st *stream) write(frame []byte) { st.send(frame) }

func (st *stream) offer(frame []byte) bool {
	st.send(frame)
	return true
}

// end says that nothing follows.
func (st *stream) end() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.ended {
		st.ended = true
		st.wakeLocked()
	}
}

func (st *stream) wakeLocked() {
	close(st.wake)
	st.wake = make(chan struct{})
}

// after returns the events behind a sequence, whether the stream has ended, and what is closed when there is more.
func (st *stream) after(sequence uint64) (events []event, ended bool, more <-chan struct{}) {
	st.mu.Lock()
	defer st.mu.Unlock()
	i, _ := slices.BinarySearchFunc(st.events, sequence+1, func(e event, want uint64) int { return int(e.sequence) - int(want) })
	return slices.Clone(st.events[i:]), st.ended, st.wake
}

// written notes that a client was sent everything up to a sequence.
func (st *stream) written(sequence uint64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.read = max(st.read, sequence)
}

// unread is the sequence of the last event that was written to a client.
func (st *stream) unread() uint64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.read
}

// take makes the caller the reader, and sends the former one away: its connection may be dead without anybody knowing.
func (st *stream) take() (sentAway chan struct{}) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.reader != nil {
		close(st.reader)
	}
	st.reader = make(chan struct{})
	return st.reader
}

// leave undoes take.
func (st *stream) leave(mine chan struct{}) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.reader == mine {
		st.reader = nil
	}
}

// size is the bytes that are kept.
func (st *stream) size() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	n := 0
	for _, e := range st.events {
		n += len(e.frame)
	}
	return n
}

// streams are those of a session: the standing one, and those of POSTs that are not read to their end yet.
type streams struct {
	standing *stream

	mu     sync.Mutex // guards what follows
	opened uint64
	open   map[uint64]*stream // not read to the end
	left   []*stream          // of them those whose client left, oldest first
}

func newStreams() *streams { return &streams{standing: newStream(0), open: map[uint64]*stream{}} }

func (s *streams) add() *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	st := newStream(s.opened)
	s.open[st.number] = st
	return st
}

// finished forgets a stream that was read to its end.
func (s *streams) finished(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(st)
}

func (s *streams) forgetLocked(st *stream) {
	delete(s.open, st.number)
	s.left = slices.DeleteFunc(s.left, func(x *stream) bool { return x == st })
}

// leave keeps a stream that was not read to its end, or forgets it where it cannot be resumed.
func (s *streams) leave(st *stream, modern bool) {
	if modern {
		s.finished(st)
		return
	}
	s.abandoned(st)
}

// abandoned keeps a stream for a client that may resume it, and forgets the oldest where there are too many.
func (s *streams) abandoned(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[st.number] != st || slices.Contains(s.left, st) {
		return
	}
	s.left = append(s.left, st)
	s.boundLocked()
}

// bound holds the bounds after an abandoned stream has grown.
func (s *streams) bound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boundLocked()
}

func (s *streams) boundLocked() {
	total := 0
	for i, st := range slices.Backward(s.left) {
		total += st.size()
		if len(s.left)-i <= keptStreams && total <= keptBytes {
			continue
		}
		for _, old := range slices.Clone(s.left[:i+1]) {
			s.forgetLocked(old)
		}
		return
	}
}

// resume is the stream and sequence an event id names, as eventID made it. A stream that is not kept any more resumes as
// the standing one; ok is false for what is no event id of this server.
func (s *streams) resume(id string) (st *stream, sequence uint64, ok bool) {
	first, second, found := strings.Cut(id, "-")
	number, err1 := strconv.ParseUint(first, 10, 64)
	sequence, err2 := strconv.ParseUint(second, 10, 64)
	if !found || err1 != nil || err2 != nil {
		return nil, 0, false
	}
	if number == 0 {
		return s.standing, sequence, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.open[number]; st != nil {
		return st, sequence, true
	}
	return s.standing, s.standing.unread(), true
}

func eventID(st *stream, e event) string {
	return strconv.FormatUint(st.number, 10) + "-" + strconv.FormatUint(e.sequence, 10)
}

// close ends all streams.
func (s *streams) close() {
	s.standing.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.open {
		st.end()
	}
}
