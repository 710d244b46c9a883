"""From the slots that records read, write and clobber to the records that each record waits for.

One pass in program order. Per slot: the last writer, the readers since then (a chain through `next_read`),
and the last record that touched it.
"""

from libc.stdint cimport int8_t, int32_t, int64_t


cdef struct Scan:
    const int8_t* conditional
    const int8_t* flags  # per slot: it stands for a flag
    int32_t* writer  # per slot, -1 if none
    int64_t* readers  # per slot, the latest node of its chain, -1 if none
    int32_t* touched  # per slot, the last record that read or wrote it, -1 if none
    int64_t* next_read  # per node; nodes are entries of the list of reads
    int32_t* reader  # per node
    int32_t* waiter  # per record, the last record that was found to wait for it
    int32_t* dep  # NULL: only count
    int8_t* kind
    int64_t size


cdef inline void wait_for(Scan* scan, int32_t r, int32_t q, int8_t kind) noexcept nogil:
    """Once per pair: data comes first and outranks buffer."""
    if q < 0 or q == r or scan.waiter[q] == r:
        return
    scan.waiter[q] = r
    if scan.dep:
        scan.dep[scan.size] = q
        scan.kind[scan.size] = kind
    scan.size += 1


cdef inline void overwrite(Scan* scan, int32_t r, int32_t slot) noexcept nogil:
    """Wait for all readers of the old contents, and for their writer unless a reader did that for sure."""
    cdef int64_t node = scan.readers[slot]
    cdef int8_t kind = 2 if scan.flags[slot] else 1
    cdef bint sure = False
    while node >= 0:
        wait_for(scan, r, scan.reader[node], kind)
        sure |= not scan.conditional[scan.reader[node]]
        node = scan.next_read[node]
    if not sure:
        wait_for(scan, r, scan.writer[slot], kind)


cdef bint clobbered_before(
    const Scan* scan, int32_t slot, const int32_t[::1] written, const int64_t[::1] clobber_start,
    const int32_t[::1] clobber, int64_t first, int64_t end,
) noexcept nogil:
    """Whether the last writer of a slot among `written` waited for all that touched `slot`, on our behalf."""
    cdef int64_t i, j
    cdef int32_t w
    for i in range(first, end):
        w = scan.writer[written[i]]
        if w > scan.touched[slot] and not scan.conditional[w]:
            for j in range(clobber_start[w], clobber_start[w + 1]):
                if clobber[j] == slot:
                    return True
    return False


cdef void scan_records(
    Scan* scan, int64_t records,
    const int64_t[::1] read_start, const int32_t[::1] read,
    const int64_t[::1] write_start, const int32_t[::1] write,
    const int64_t[::1] clobber_start, const int32_t[::1] clobber,
    int64_t[::1] dep_start,
) noexcept nogil:
    cdef int32_t r, slot
    cdef int64_t i, first, end
    for r in range(<int32_t>records):
        dep_start[r] = scan.size
        first, end = write_start[r], write_start[r + 1]
        for i in range(read_start[r], read_start[r + 1]):
            wait_for(scan, r, scan.writer[read[i]], 2 if scan.flags[read[i]] else 0)
        for i in range(first, end):
            overwrite(scan, r, write[i])
        for i in range(clobber_start[r], clobber_start[r + 1]):
            if not clobbered_before(scan, clobber[i], write, clobber_start, clobber, first, end):
                overwrite(scan, r, clobber[i])
        for i in range(first, end):
            scan.writer[write[i]] = scan.touched[write[i]] = r
            scan.readers[write[i]] = -1
        for i in range(read_start[r], read_start[r + 1]):
            slot = read[i]
            if scan.writer[slot] != r:
                scan.reader[i] = r
                scan.next_read[i] = scan.readers[slot]
                scan.readers[slot] = i
                scan.touched[slot] = r
    dep_start[records] = scan.size


def scan(
    const int64_t[::1] read_start, const int32_t[::1] read,
    const int64_t[::1] write_start, const int32_t[::1] write,
    const int64_t[::1] clobber_start, const int32_t[::1] clobber,
    const int8_t[::1] conditional, const int8_t[::1] flags,
    int32_t[::1] writer, int64_t[::1] readers, int32_t[::1] touched,
    int64_t[::1] next_read, int32_t[::1] reader, int32_t[::1] waiter,
    int64_t[::1] dep_start, int32_t[::1] dep, int8_t[::1] kind,
):
    """Fill `dep_start` and, if it is not empty, `dep` and `kind`; return the number of dependencies.

    The caller sizes the arrays, fills writer, readers, touched and waiter with -1, and checks all slot
    numbers.
    """
    cdef int64_t records = dep_start.shape[0] - 1
    cdef Scan state
    if records == 0:
        return 0
    state = Scan(
        &conditional[0], &flags[0], &writer[0], &readers[0], &touched[0], &next_read[0], &reader[0],
        &waiter[0], NULL, NULL, 0,
    )
    if dep.shape[0]:
        state.dep, state.kind = &dep[0], &kind[0]
    with nogil:
        scan_records(
            &state, records, read_start, read, write_start, write, clobber_start, clobber, dep_start
        )
    return state.size
