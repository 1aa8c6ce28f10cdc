package icon

import (
	"container/list"
	"time"
)

// entryOverhead is what an entry costs besides its strings, in bytes.
const entryOverhead = 256

// A cache keeps outcomes, good and bad, within a number of bytes; the least
// recently used goes first. It does no locking.
type cache struct {
	limit   int // bytes
	size    int // bytes held
	entries map[string]*list.Element
	recent  list.List // of *entry, the most recent first
}

// An entry is the outcome of one icon, good until expires.
type entry struct {
	key     string
	image   Image
	err     error
	expires time.Time
}

func (e *entry) bytes() int { return entryOverhead + len(e.key) + len(e.image.URI) }

// get returns key's entry, if there is one and it is still good.
func (c *cache) get(key string, now time.Time) *entry {
	element, ok := c.entries[key]
	if !ok {
		return nil
	}
	e := element.Value.(*entry)
	if !now.Before(e.expires) {
		c.remove(element)
		return nil
	}
	c.recent.MoveToFront(element)
	return e
}

// put adds e in place of any entry of the same key. One that is larger than
// the cache is not kept.
func (c *cache) put(e *entry) {
	if old, ok := c.entries[e.key]; ok {
		c.remove(old)
	}
	if e.bytes() > c.limit {
		return
	}
	if c.entries == nil {
		c.entries = make(map[string]*list.Element)
	}
	c.entries[e.key] = c.recent.PushFront(e)
	c.size += e.bytes()
	for c.size > c.limit {
		c.remove(c.recent.Back())
	}
}

func (c *cache) remove(element *list.Element) {
	e := c.recent.Remove(element).(*entry)
	delete(c.entries, e.key)
	c.size -= e.bytes()
}

// clear drops everything.
func (c *cache) clear() {
	clear(c.entries)
	c.recent.Init()
	c.size = 0
}
