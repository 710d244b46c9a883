"""Kinds of records and runs of kinds, found while records come in (packing.py)."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint16_t, uint64_t
from libc.string cimport memcmp

from ascendtile.simulator.timing.engine._state cimport MAX_PIPES, Record

cdef enum:
    N = 16  # kinds in a row that say how far back a loop may have been at the same place
cdef uint64_t BASE = 0x9E3779B97F4A7C15ULL
STATE = 9  # numbers of a `Fold` that live on between two calls


def relate(
    int64_t first, int64_t near, const int64_t[::1] number, const int8_t[::1] pipe,
    const double[::1] latency, const int8_t[::1] conditional, const double[::1] most,
    const int64_t[::1] dep_start, const int32_t[::1] dep, const int8_t[::1] dep_kind,
    uint16_t[::1] waited, int32_t[::1] kept, int64_t[::1] keep, int64_t keeps,
    int64_t[::1] start, int32_t[::1] back, int8_t[::1] kind,
):
    """Fill `start`, `back` and `kind` with the dependencies of the records from `first` on.

    number: which record of the trace each one is. Left out is what a record before on its pipe has waited
    for, and who is done before another one of the list for sure: one before it on its pipe with no longer
    latency (for one that programs skip, and that then stands for any before it, `most` of the pipe counts).
    kept: per record its place in `keep`, -1 if it has none; one more than `near` records back gets one.
    Returns how many are kept.
    """
    cdef int64_t r, i, d, next = 0
    cdef int32_t q, mine
    cdef int p
    cdef double[16] longest
    cdef int64_t[16] latest
    with nogil:
        for r in range(first, number.shape[0]):
            start[r - first] = next
            mine = 1 << pipe[r]
            for p in range(MAX_PIPES):
                latest[p] = -1
            for i in range(dep_start[r], dep_start[r + 1]):
                q, p = dep[i], pipe[dep[i]]
                if waited[q] & mine or (
                    latest[p] > q and longest[p] >= (most[p] if conditional[q] else latency[q])
                ):
                    continue
                if not conditional[q] and latest[p] < 0:
                    latest[p], longest[p] = q, latency[q]
                if not conditional[r]:
                    waited[q] |= mine
                d = number[r] - number[q]
                if d > near:
                    if kept[q] < 0:
                        kept[q], keep[keeps] = <int32_t>keeps, number[q]
                        keeps += 1
                    d = -1 - kept[q]
                back[next] = <int32_t>d
                kind[next] = dep_kind[i] | (p != pipe[r]) << 2
                next += 1
        start[number.shape[0] - first] = next
    return keeps


def alive(
    const int64_t[::1] readers, const int64_t[::1] next_read, const int32_t[::1] reader,
    const int8_t[::1] pipe, const double[::1] latency, const int8_t[::1] conditional,
    const double[::1] most, int32_t[::1] slots, int32_t[::1] records,
):
    """Fill in slots and the records that still read them; return how many.

    Left out is who is done before a later one for sure, as in `relate`.
    """
    cdef int64_t slot, node, size = 0
    cdef int32_t q
    cdef int p
    cdef double[16] longest
    with nogil:
        for slot in range(readers.shape[0]):
            for p in range(MAX_PIPES):
                longest[p] = -1.0
            node = readers[slot]
            while node >= 0:
                q = reader[node]
                p = pipe[q]
                if longest[p] < (most[p] if conditional[q] else latency[q]):
                    slots[size], records[size] = <int32_t>slot, q
                    size += 1
                    if not conditional[q]:
                        longest[p] = latency[q]
                node = next_read[node]
    return size


cdef inline uint64_t mixed(uint64_t a) noexcept nogil:
    a ^= a >> 30
    a *= 0xBF58476D1CE4E5B9ULL
    a ^= a >> 27
    a *= 0x94D049BB133111EBULL
    return a ^ (a >> 31)


cdef inline uint64_t hash_of(
    const Record* row, const int32_t* back, const int8_t* kind, int64_t count
) noexcept nogil:
    cdef const uint64_t* words = <const uint64_t*>row
    cdef uint64_t h = count
    cdef int64_t i
    for i in range(<int64_t>(sizeof(Record) // 8)):
        h = mixed(h ^ words[i]) + BASE
    for i in range(count):
        h = mixed(h ^ (<uint64_t><int64_t>back[i] << 3 | kind[i])) + BASE
    return h


def intern(
    const Record[::1] rows, const int64_t[::1] start, const int32_t[::1] back, const int8_t[::1] kind,
    Record[::1] kinds, int64_t[::1] kind_start, int32_t[::1] kind_back, int8_t[::1] kind_kind,
    uint64_t[::1] hashes, int32_t[::1] table, int64_t known, int32_t[::1] codes,
):
    """Fill `codes`: the kind of each row with its dependencies. New kinds go behind those that are known.

    rows: without bytes that mean nothing. table: hash -> kind, -1 for none; a power of two long. Returns the
    number of kinds.
    """
    cdef int64_t r, count, mask = table.shape[0] - 1, at, a, b
    cdef int32_t k
    cdef uint64_t h
    with nogil:
        for r in range(rows.shape[0]):
            a = start[r]
            count = start[r + 1] - a
            h = hash_of(&rows[r], &back[0] + a, &kind[0] + a, count)
            at = h & mask
            while True:
                k = table[at]
                if k < 0:
                    break
                b = kind_start[k]
                if (
                    hashes[k] == h and kind_start[k + 1] - b == count
                    and memcmp(&rows[r], &kinds[k], sizeof(Record)) == 0
                    and memcmp(&back[0] + a, &kind_back[0] + b, count * sizeof(int32_t)) == 0
                    and memcmp(&kind[0] + a, &kind_kind[0] + b, count) == 0
                ):
                    break
                at = (at + 1) & mask
            if k < 0:
                k = <int32_t>known
                known += 1
                table[at], hashes[k], kinds[k] = k, h, rows[r]
                b = kind_start[k]
                kind_start[k + 1] = b + count
                for at in range(count):
                    kind_back[b + at], kind_kind[b + at] = back[a + at], kind[a + at]
            codes[r] = k
    return known


def rebuild(const uint64_t[::1] hashes, int64_t known, int32_t[::1] table):
    """Put the kinds that are known into an empty table."""
    cdef int64_t k, at, mask = table.shape[0] - 1
    with nogil:
        for k in range(known):
            at = hashes[k] & mask
            while table[at] >= 0:
                at = (at + 1) & mask
            table[at] = <int32_t>k


cdef struct Fold:
    int64_t size  # of the order
    int64_t position  # records so far
    int64_t literal, base  # where kinds without a run begin in the order, and with which record
    int64_t length  # of the run, or of what may become one; 0 if there is none
    int64_t matched  # records that were as those `length` before
    int64_t running  # 1: in a run; `first` is where its kinds begin and `at` the next one
    int64_t first, at


cdef inline bint as_before(Fold* f, int32_t c, const int32_t* order) noexcept nogil:
    """In a run: whether the record is the one that comes next; otherwise the run is over."""
    if order[f.first + f.at] == c:
        f.at = f.at + 1 if f.at + 1 < f.length else 0
        f.position += 1
        return True
    f.running = f.length = f.matched = 0
    f.literal, f.base = f.size, f.position
    return False


cdef inline void look_back(Fold* f, int64_t most, const int32_t* order, int64_t[::1] table) noexcept nogil:
    """Find where the last `N` kinds were before; if they were, a run may have begun there."""
    cdef uint64_t gram = 0
    cdef int64_t k, before
    for k in range(f.size - N, f.size):
        gram = gram * BASE + <uint64_t>order[k] + 1
    k = mixed(gram) & (table.shape[0] - 1)
    before = table[k]
    table[k] = f.position
    if f.length or before < f.base + N or f.position - before > most:
        return
    f.length, f.matched = f.position - before, 0
    while f.matched < N:
        k = f.size - 1 - f.matched
        if order[k] != order[k - f.length]:
            f.length = f.matched = 0
            return
        f.matched += 1


cdef inline int64_t follow(
    Fold* f, int32_t c, int64_t least, int64_t most, int32_t* order, int64_t[::1] table,
    int64_t[:, ::1] runs, int64_t count,
) noexcept nogil:
    """One more record; returns the number of runs."""
    cdef int64_t all
    if f.running and as_before(f, c, order):
        return count
    order[f.size] = c
    f.size += 1
    f.position += 1
    if f.length:
        if order[f.size - 1 - f.length] == c:
            f.matched += 1
        else:
            f.length = f.matched = 0
    if f.size - f.literal >= N and (not f.length or f.position & 15 == 0):
        look_back(f, most, order, table)
    if not f.length or f.matched < least or f.matched < f.length:
        return count
    all = f.matched + f.length
    f.first = f.size - all
    if f.first > f.literal:
        runs[count, 0], runs[count, 1], runs[count, 2] = f.base, f.literal, f.first - f.literal
        count += 1
    runs[count, 0], runs[count, 1], runs[count, 2] = f.position - all, f.first, f.length
    f.size = f.first + f.length
    f.running, f.at = 1, all % f.length
    return count + 1


def fold(
    const int32_t[::1] codes, int64_t least, int64_t most, int64_t[::1] state, int32_t[::1] order,
    int64_t[::1] table, int64_t[:, ::1] runs, int64_t count,
):
    """Append records to the order; what repeats for `least` records becomes a run, of at most `most` kinds.

    state: zeros at first. table: zeros at first, a power of two long: where some kinds in a row were last.
    runs: rows of start, first, length; `count` of them are known. Returns how many are then.
    """
    cdef int64_t i
    cdef Fold f
    cdef int64_t* fields = <int64_t*>&f
    for i in range(9):
        fields[i] = state[i]
    with nogil:
        for i in range(codes.shape[0]):
            count = follow(&f, codes[i], least, most, &order[0], table, runs, count)
    for i in range(9):
        state[i] = fields[i]
    return count
