package runner

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/dibslock/dibs/cmd/internal/book"
)

// An Event is a change that this instance made or saw. Ids grow, and are this
// instance's own.
type Event struct {
	ID   uint64
	Type string // run, job or instances
	Data any
}

// kept is how many events are kept for who comes back.
const kept = 1000

// A hub tells of changes. Who is too slow misses the oldest ones and is told so.
type hub struct {
	mu    sync.Mutex // guards what follows
	last  uint64
	ring  []Event // the last ones, oldest first
	subs  map[chan struct{}]bool
	shown string // the instances, as told last
	ended chan struct{}
}

func newHub() *hub {
	return &hub{subs: make(map[chan struct{}]bool), ended: make(chan struct{})}
}

// tell tells of a change.
func (h *hub) tell(kind string, data any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.ring = append(h.ring, Event{h.last, kind, data})
	if len(h.ring) > 2*kept {
		h.ring = slices.Clone(h.ring[len(h.ring)-kept:])
	}
	for c := range h.subs {
		select {
		case c <- struct{}{}:
		default: // it has one to hear of
		}
	}
}

func (h *hub) run(r book.Run)  { h.tell("run", r) }
func (h *hub) job(name string) { h.tell("job", map[string]string{"id": name}) }

// instances tells of them if who is there, or what they do, has changed.
func (h *hub) instances(all []book.Instance) {
	shown := slices.Clone(all)
	for i := range shown {
		shown[i].Beat = 0
	}
	text, _ := json.Marshal(shown)
	h.mu.Lock()
	same := h.shown == string(text)
	h.shown = string(text)
	h.mu.Unlock()
	if !same {
		h.tell("instances", shown)
	}
}

// subscribe returns a channel that has something when there is news.
func (h *hub) subscribe() (news <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[c] = true
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, c)
	}
}

// since returns the events after id; ok is false if some are not kept any more, or
// id isn't from here.
func (h *hub) since(id uint64) (events []Event, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id > h.last || len(h.ring) > 0 && id+1 < h.ring[0].ID {
		return nil, false
	}
	i, _ := slices.BinarySearchFunc(h.ring, id+1, func(e Event, id uint64) int { return int(e.ID) - int(id) })
	return slices.Clone(h.ring[i:]), true
}

func (h *hub) close() { close(h.ended) }

// A Feed is a subscription to the events of an instance.
type Feed struct {
	hub  *hub
	news <-chan struct{}
	stop func()
	at   uint64
}

// Feed subscribes. after is the id of the last event that was seen, as Event.ID
// and Mark write it; whole tells that it isn't known here, so that all must be
// looked at anew. Close it.
func (r *Runner) Feed(after string) (f *Feed, whole bool) {
	f = &Feed{hub: r.hub}
	f.news, f.stop = r.hub.subscribe()
	id, err := strconv.ParseUint(after, 10, 64)
	if _, ok := r.hub.since(id); err != nil || !ok {
		r.hub.mu.Lock()
		id = r.hub.last
		r.hub.mu.Unlock()
		whole = true
	}
	f.at = id
	return f, whole
}

// At returns the id of the last event that was returned.
func (f *Feed) At() uint64 { return f.at }

// News has something when Next has, and Ended is closed when the instance ends.
func (f *Feed) News() <-chan struct{}  { return f.news }
func (f *Feed) Ended() <-chan struct{} { return f.hub.ended }

// Next returns what happened since; whole tells that some of it was missed.
func (f *Feed) Next() (events []Event, whole bool) {
	events, ok := f.hub.since(f.at)
	if !ok {
		f.hub.mu.Lock()
		f.at = f.hub.last
		f.hub.mu.Unlock()
		return nil, true
	}
	if len(events) > 0 {
		f.at = events[len(events)-1].ID
	}
	return events, false
}

// Close ends the subscription.
func (f *Feed) Close() { f.stop() }
