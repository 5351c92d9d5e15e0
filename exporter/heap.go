package exporter

// axis is a time by which open records are ordered.
type axis uint8

const (
	// byNext is when the record is read again.
	byNext axis = iota
	// bySign is the record's last sign of life.
	bySign
	axes
)

// heap orders records of a watch set by one of their times, the earliest
// first. It holds their numbers alone; a record knows its position, so that it
// can leave from anywhere. A record is in one heap of an axis at most.
type heap struct {
	axis axis
	list []uint32
}

func (h *heap) push(w *watch, n uint32) {
	h.list = append(h.list, n)
	h.up(w, len(h.list)-1)
}

// first is the number of the earliest record.
func (h *heap) first() (n uint32, ok bool) {
	if len(h.list) == 0 {
		return 0, false
	}
	return h.list[0], true
}

// remove takes out a record that is in this heap.
func (h *heap) remove(w *watch, n uint32) {
	i, last := int(w.at(n).pos[h.axis]), len(h.list)-1
	moved := h.list[last]
	h.list = h.list[:last]
	if i == last {
		return
	}
	h.list[i] = moved
	if !h.up(w, i) {
		h.down(w, i)
	}
}

func (h *heap) before(w *watch, a, b uint32) bool {
	return w.at(a).when[h.axis] < w.at(b).when[h.axis]
}

// up moves the record at i towards the front, and reports whether it moved.
func (h *heap) up(w *watch, i int) (moved bool) {
	n := h.list[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(w, n, h.list[parent]) {
			break
		}
		h.place(w, i, h.list[parent])
		i, moved = parent, true
	}
	h.place(w, i, n)
	return moved
}

// down moves the record at i towards the end.
func (h *heap) down(w *watch, i int) {
	n := h.list[i]
	for {
		child := 2*i + 1
		if child >= len(h.list) {
			break
		}
		if right := child + 1; right < len(h.list) && h.before(w, h.list[right], h.list[child]) {
			child = right
		}
		if !h.before(w, h.list[child], n) {
			break
		}
		h.place(w, i, h.list[child])
		i = child
	}
	h.place(w, i, n)
}

func (h *heap) place(w *watch, i int, n uint32) {
	h.list[i] = n
	w.at(n).pos[h.axis] = uint32(i)
}
