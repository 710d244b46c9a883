"""Max-min fair sharing of bandwidth, in the fluid model.

Every transfer that streams now is a flow of one channel. A flow is limited by its channel's port and by the
shared resources that the channel uses; all flows of a channel have the same rate, so the state is per
channel:

    work(now) = work + rate * (now - since)     bytes that any one flow streamed since the channel was last
    empty finish of a flow = work(when it joined) + its bytes

and the flow with the least finish ends first. Rates change only when the set of flows changes.
"""

from ascendtile.simulator.timing.engine._heap cimport Heap

cdef enum:
    MAX_CHANNELS = 16
    MAX_RESOURCES = 8
    SHARE_BITS = 2
    SHARES = 3  # the most of one resource that a flow takes

cdef struct Channel:
    double port  # bytes per cycle that one flow can take at most, of each share
    unsigned int uses  # SHARE_BITS for each resource: how many shares a flow of this channel takes
    Heap flows  # keyed by finish; the item is the caller's number of the flow
    double work, since, rate
    double end  # when the first flow ends if no rate changes; infinity when none is due
    int settled  # number of flows at which `rate` was found

cdef struct Sharing:
    int channels, resources
    unsigned int live  # bit per channel: whether it has flows, or had some when rates were found
    int first  # the channel whose first flow ends first, the lowest number when several do
    Channel channel[MAX_CHANNELS]
    double capacity[MAX_RESOURCES]  # bytes per cycle, all flows together

cdef void fair_rates(Sharing* sharing, double* rates) noexcept nogil
cdef void join(Sharing* sharing, int channel, double now, double amount, int flow) noexcept nogil
cdef int leave(Sharing* sharing, int channel) noexcept nogil
cdef void settle(Sharing* sharing, double now) noexcept nogil

cdef extern from *:
    """
    #define lowest_bit(x) __builtin_ctz(x)
    """
    int lowest_bit(unsigned int x) nogil
