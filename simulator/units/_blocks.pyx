"""Memory for tiles that is kept and given out again: fresh pages at every operation cost more than the work.

A `MemoryBlock` is memory under Python's buffer protocol; an array made on it owns it, and when the last view
of that array is gone the memory comes back here. The block given back last goes out first: it is the one that
the cache still holds.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from cpython.buffer cimport PyBuffer_FillInfo

cimport cython

cdef enum:
    SLOTS = 64
    ALIGNMENT = 64  # bytes of a cache line
    STEP = 65536  # capacities are multiples of it, so that a last, smaller chunk finds a block too

cdef Py_ssize_t KEPT_BYTES = 32 << 20  # at most so much is kept unused

cdef struct Slot:
    void* memory
    Py_ssize_t capacity

cdef Slot[SLOTS] kept
cdef int count = 0
cdef Py_ssize_t kept_bytes = 0
cdef cython.pymutex lock


cdef void* take(Py_ssize_t capacity) noexcept:
    """The block of that capacity that came back last, or fresh memory; NULL if there is none."""
    global count, kept_bytes
    cdef int k, j
    cdef void* found = NULL
    with lock:
        for k in range(count - 1, -1, -1):
            if kept[k].capacity == capacity:
                found = kept[k].memory
                kept_bytes -= capacity
                count -= 1
                for j in range(k, count):
                    kept[j] = kept[j + 1]
                break
    return found if found != NULL else malloc(capacity + ALIGNMENT)


cdef void give_back(void* memory, Py_ssize_t capacity) noexcept:
    """Keep a block; the oldest ones go where there are too many."""
    global count, kept_bytes
    cdef int j
    if capacity > KEPT_BYTES:
        free(memory)
        return
    with lock:
        while count == SLOTS or kept_bytes + capacity > KEPT_BYTES:
            free(kept[0].memory)
            kept_bytes -= kept[0].capacity
            count -= 1
            for j in range(count):
                kept[j] = kept[j + 1]
        kept[count].memory = memory
        kept[count].capacity = capacity
        count += 1
        kept_bytes += capacity


@cython.final
cdef class MemoryBlock:
    """`size` writable bytes, aligned to a cache line, not initialised."""

    cdef void* memory
    cdef Py_ssize_t capacity
    cdef Py_ssize_t size

    def __cinit__(self, Py_ssize_t size):
        self.size = size
        self.capacity = (size + STEP - 1) // STEP * STEP
        self.memory = take(self.capacity)
        if self.memory == NULL:
            raise MemoryError(f"a tile of {size} bytes does not fit in memory")

    def __getbuffer__(self, Py_buffer* view, int flags):
        cdef uintptr_t start = (<uintptr_t> self.memory + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        PyBuffer_FillInfo(view, self, <void*> start, self.size, False, flags)

    def __dealloc__(self):
        if self.memory != NULL:
            give_back(self.memory, self.capacity)


def kept_now():
    """Bytes that are kept while they are not used."""
    return kept_bytes
