"""A binary heap of (key, item) pairs; equal keys leave in item order, so a run never depends on insertion
order."""


cdef struct Entry:
    double key
    int item


cdef struct Heap:
    Entry* entries
    int size


cdef inline bint before(Entry a, Entry b) noexcept nogil:
    return a.key < b.key or (a.key == b.key and a.item < b.item)


cdef inline void push(Heap* heap, double key, int item) noexcept nogil:
    """The caller has allocated room for every entry that can be inside at once."""
    cdef Entry entry = Entry(key, item)
    cdef int hole = heap.size, parent
    heap.size += 1
    while hole > 0:
        parent = (hole - 1) >> 1
        if not before(entry, heap.entries[parent]):
            break
        heap.entries[hole] = heap.entries[parent]
        hole = parent
    heap.entries[hole] = entry


cdef inline int pop(Heap* heap) noexcept nogil:
    """Remove the first entry and return its item; the heap must not be empty."""
    cdef int first = heap.entries[0].item
    cdef int hole = 0, child
    cdef Entry entry
    heap.size -= 1
    entry = heap.entries[heap.size]
    while True:
        child = 2 * hole + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and before(heap.entries[child + 1], heap.entries[child]):
            child += 1
        if not before(heap.entries[child], entry):
            break
        heap.entries[hole] = heap.entries[child]
        hole = child
    heap.entries[hole] = entry
    return first
