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
	entries map[key]*list.Element
	recent  list.List // of *entry, the most recent first
}

// A key names an icon. What was declared differently is kept apart: the same
// bytes may be right under one label and wrong under another.
type key struct {
	declared format
	source   string // the URL, or what stands for it
}

// An entry is the outcome of one icon, good until expires.
type entry struct {
	key     key
	outcome *Pending // it has ended
	expires time.Time
}

func (e *entry) bytes() int { return entryOverhead + len(e.key.source) + len(e.outcome.image.URI) }

// get returns the outcome for k, if there is one and it is still good.
func (c *cache) get(k key, now time.Time) *Pending {
	element, ok := c.entries[k]
	if !ok {
		return nil
	}
	e := element.Value.(*entry)
	if !now.Before(e.expires) {
		c.remove(element)
		return nil
	}
	c.recent.MoveToFront(element)
	return e.outcome
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
		c.entries = make(map[key]*list.Element)
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
