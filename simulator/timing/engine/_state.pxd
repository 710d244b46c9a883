"""The state of the machine and of each of its cores. All times are in cycles.

The rows are what Python lays out (layout.py has the same fields); the rest belongs to the loop.
"""

from libc.stdint cimport int8_t, int32_t, int64_t

from ascendtile.simulator.timing.engine._bandwidth cimport Sharing
from ascendtile.simulator.timing.engine._heap cimport Heap

cdef enum:
    MAX_PIPES = 16
    MAX_UNITS = 4

cdef enum Reason:
    DATA = 0  # the first three are the kinds of a dependency
    BUFFER = 1
    FLAG = 2
    ISSUE = 3
    BANDWIDTH = 4
    TAIL = 5
    REASONS = 6

cdef enum:
    UNKNOWN = -1  # a done time
    MEETING = -2  # as a channel, and below: meetings of all programs, MEETINGS kinds of them
    MEETINGS = 3

cdef struct PipeRow:
    int32_t unit
    int32_t scalar
    int32_t depth
    int32_t first  # where this pipe's queue begins among the queues of its core

cdef struct ChannelRow:
    double port
    int64_t uses

cdef struct Record:
    double occupancy
    double latency
    double amount
    int32_t dep_first
    int32_t dep_count
    int32_t column
    int32_t instructions
    int32_t line
    int8_t pipe
    int8_t channel

cdef struct Run:  # records in a row: the same `length` kinds again and again, up to where the next run starts
    int64_t start
    int64_t first  # of its kinds in the order
    int64_t length

cdef struct ProgramRow:
    int64_t first  # of its kinds of records
    int64_t count  # of its records
    int64_t reach  # how far back a record may ask when another one was done, but for kept ones
    int64_t row  # of its values in the table
    int64_t run  # the first of its runs
    int64_t runs  # 0: each kind is met once, in order
    int64_t order  # where its order begins
    int64_t keep  # the first of its records whose times are kept
    int64_t keeps

cdef struct SpanRow:
    double start
    double end
    int32_t core

cdef struct TimelineRow:
    double start
    double end
    double done
    double gap  # cycles that the pipe was free before
    double beyond  # cycles of a transfer that sharing bandwidth added
    double amount  # bytes of a transfer
    int32_t core
    int32_t program
    int32_t record
    int32_t waited  # the record that the gap waited for, -1 if none
    int32_t pipe
    int32_t reason  # of the gap, -1 if there is none

cdef struct Interval:  # a record that took time on its pipe
    double begin
    double end
    int64_t line

cdef struct Lane:  # what a pipe has done and is not charged to lines yet
    Interval* intervals
    int64_t room, head, tail
    double since  # the shared clock when the one at `head` began

cdef struct Stage:  # the scalar issue stage of one unit
    double time  # when it has issued everything before `next`
    int next
    bint busy  # with a transfer of its scalar pipe
    int cause  # the record that it waited for last, -1 if none
    int full  # the pipe without room in its queue for the next record, -1 if none is known
    int waits  # the record that its scalar record waits for, not known when last looked at; -1 if none

cdef struct Pipe:
    double free  # when it can take another record
    double done  # when the result of its last record was done
    int issued, started  # records of this program
    int head, tail  # places in the queue of the next record to start and to issue
    double* times  # per place: when the record was issued and, once it has started, when it started
    int* records
    int* causes  # per place: what the stage had waited for last when it issued the record
    int waits  # the record whose unknown done time the next one in the queue waits for; -1 if none is known
    bint streaming  # or in a meeting
    int record  # the transfer that streams, or waits for the clock to start; the meeting
    double start, amount
    double gap, beyond  # of the record that started last
    int reason, waited

cdef struct Core:
    int index, program, count, left
    const Record* kinds
    const double* row
    const Run* run  # of record `high`
    const Run* last_run  # NULL: each kind is met once
    const int32_t* order  # of the run's kinds
    int64_t place  # in the run, of record `high`
    const int64_t* keep  # records whose times are asked for from far behind, `keeps` of them, in order
    int64_t keeps
    int64_t gone  # of them that are before `low`
    double* kept  # when these were done
    double begin
    double* done  # per record; UNKNOWN, or -2 - q: skipped, done together with record q
    int32_t* kind  # per record
    int8_t* unit  # per record
    double* window  # what is kept of `done`: from record `low` to before `high`, in `room` places
    int32_t* kind_window  # of `kind`
    int8_t* unit_window  # of `unit`
    int64_t room, low, high, reach
    int passed[MAX_PIPES]  # the last record before `high` that is not skipped; -1 if none
    Lane lanes[MAX_PIPES]
    double lane_time[MAX_PIPES]  # when the interval at `head` begins, or ends once it has; infinite for none
    unsigned int lanes_busy  # bit per lane: whether it has begun
    double charged, shared  # time up to which lines are charged; the clock of pipes that share it
    double horizon  # when the last result so far is done, ...
    int64_t due  # intervals of a pipe that are enough to charge some of them
    int charging  # busy pipes at `charged`
    int64_t last_line  # of the last one that was busy, -1 before any
    int final  # ... of which record, -1 if none
    int64_t final_line  # its line
    Stage stages[MAX_UNITS]
    unsigned int queued, streaming  # bit per pipe: records in its queue; a transfer under way
    Pipe pipes[MAX_PIPES]
    double* busy  # [pipes]
    double* stalls  # [pipes, REASONS]

cdef struct World:
    int pipes, units
    const PipeRow* pipe
    double cross, issue
    const Run* runs
    const int32_t* order
    const int64_t* keep
    # How many records back << 3 | crosses pipes << 2 | kind; below 0: -1 - (number in `keep` << 3 | ...)
    const int32_t* deps
    double now
    Sharing sharing
    Heap starts  # transfers that start after now, and meetings that somebody comes to
    Heap frees  # cores that will have finished their program
    double* line_busy  # [lines, pipes]
    double* line_stalls  # [lines, pipes, REASONS]
    double* channel_bytes
    int64_t records_run, instructions_run, late
    TimelineRow* timeline
    int64_t timeline_size, timeline_limit
    double timeline_until  # the least start of a record that is not in it
    double* line_exposed
    bint by_line  # whether time is charged to lines
    bint full  # no memory for the state of a core
    int64_t met[MEETINGS]  # who has come to a meeting of each kind and waits
    int64_t expected[MEETINGS]  # who has to come until it is over

cdef inline const Record* record_of(const Core* core, int64_t r) noexcept nogil:
    """A record from `low` to before `high`."""
    return &core.kinds[core.kind[r]]

cdef inline bint is_known(const Core* core, int64_t r) noexcept nogil:
    """Whether it is known when a record was done; one that is forgotten is known."""
    return r < core.low or core.done[r] != UNKNOWN
