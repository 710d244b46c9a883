"""Max-min fair sharing of bandwidth; the model is described in _bandwidth.pxd."""

from libc.math cimport INFINITY

from ascendtile.simulator.timing.engine._heap cimport pop, push


cdef inline int shares(const Sharing* sharing, int c, int j) noexcept nogil:
    return sharing.channel[c].uses >> SHARE_BITS * j & SHARES


cdef void fair_rates(Sharing* sharing, double* rates) noexcept nogil:
    """Progressive filling: all flows rise together; a port or a resource that is full stops the flows it
    carries."""
    cdef double left[MAX_RESOURCES]
    cdef double share[MAX_RESOURCES]
    cdef int users[MAX_RESOURCES]
    cdef unsigned int rising = 0, full, rest = sharing.live
    cdef double level
    cdef int c, j, flows
    for j in range(sharing.resources):
        left[j] = sharing.capacity[j]
        users[j] = 0
    while rest:
        c = lowest_bit(rest)
        rest &= rest - 1
        flows = sharing.channel[c].flows.size
        rates[c] = 0.0
        if flows:
            rising |= 1u << c
            for j in range(sharing.resources):
                users[j] += flows * shares(sharing, c, j)
    while rising:
        level = INFINITY
        rest = rising
        while rest:
            level = min(level, sharing.channel[lowest_bit(rest)].port)
            rest &= rest - 1
        for j in range(sharing.resources):
            share[j] = left[j] / users[j] if users[j] else INFINITY
            level = min(level, share[j])
        full = 0
        for j in range(sharing.resources):
            full |= <unsigned int>(SHARES * (share[j] <= level)) << SHARE_BITS * j
        rest = rising
        while rest:
            c = lowest_bit(rest)
            rest &= rest - 1
            if sharing.channel[c].port <= level or sharing.channel[c].uses & full:
                rising ^= 1u << c
                rates[c] = level
                for j in range(sharing.resources):
                    flows = sharing.channel[c].flows.size * shares(sharing, c, j)
                    left[j] -= level * flows
                    users[j] -= flows


cdef inline void find_end(Channel* channel) noexcept nogil:
    if channel.flows.size and channel.rate > 0:
        channel.end = channel.since + (channel.flows.entries[0].key - channel.work) / channel.rate
    else:
        channel.end = INFINITY


cdef inline void find_first(Sharing* sharing) noexcept nogil:
    cdef unsigned int rest = sharing.live
    cdef double end = INFINITY
    cdef int c
    while rest:
        c = lowest_bit(rest)
        rest &= rest - 1
        if sharing.channel[c].end < end:
            sharing.first, end = c, sharing.channel[c].end


cdef void join(Sharing* sharing, int channel, double now, double amount, int flow) noexcept nogil:
    """A flow of `amount` bytes starts; `settle` must be called before time moves on."""
    cdef Channel* one = &sharing.channel[channel]
    cdef double first
    if one.flows.size == 0:  # start the count of bytes afresh: it stays small, hence exact, over a long run
        one.work = 0.0
        one.since = now
    push(&one.flows, one.work + one.rate * (now - one.since) + amount, flow)
    find_end(one)
    sharing.live |= 1u << channel
    first = sharing.channel[sharing.first].end
    if one.end < first or (one.end == first and channel < sharing.first):
        sharing.first = channel


cdef int leave(Sharing* sharing, int channel) noexcept nogil:
    """The first flow of the channel has ended; `settle` must be called before time moves on."""
    cdef int flow = pop(&sharing.channel[channel].flows)
    find_end(&sharing.channel[channel])
    find_first(sharing)
    return flow


cdef void settle(Sharing* sharing, double now) noexcept nogil:
    """Give every channel the rate that its present flows deserve. A flow replaced by another changes no
    rate."""
    cdef double rates[MAX_CHANNELS]
    cdef Channel* one
    cdef bint changed = False
    cdef unsigned int rest = sharing.live
    cdef int c
    while rest:
        c = lowest_bit(rest)
        rest &= rest - 1
        changed |= sharing.channel[c].flows.size != sharing.channel[c].settled
    if not changed:
        return
    fair_rates(sharing, rates)
    rest = sharing.live
    while rest:
        c = lowest_bit(rest)
        rest &= rest - 1
        one = &sharing.channel[c]
        one.settled = one.flows.size
        if not one.settled:
            sharing.live ^= 1u << c
        if rates[c] != one.rate:
            one.work += one.rate * (now - one.since)
            one.since = now
            one.rate = rates[c]
            find_end(one)
    find_first(sharing)
