"""The state of the machine and of each of its cores. All times are in cycles.

The rows are what Python lays out (layout.py has the same fields); the rest belongs to the loop.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t

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
    UNKNOWN = -1  # a done time; all others are at least 0
    CROSSES = 4  # bit of a dependency's code
    NONE = -1  # in place of a record
    BARRIER = -2  # as a channel, and below: barriers of all programs, BARRIERS kinds of them
    BARRIERS = 3

cdef struct PipeRow:
    int32_t unit
    int32_t scalar
    int32_t depth
    int32_t first  # where this pipe's queue begins among the queues of its core
    int32_t count  # equal pipes that it stands for

cdef struct ChannelRow:
    double port
    int64_t uses

cdef struct Record:  # an instruction of the trace
    double occupancy
    double latency
    double amount
    # First row of its amounts among the program's values; -1: `amount`, or `occupancy` without a channel.
    int32_t column
    int32_t cycles  # first row of its occupancies; -1: `occupancy`
    int32_t instructions
    int32_t line
    int32_t slot  # where its slots begin: those it reads, writes and clobbers
    int32_t stride  # where its strides begin
    int32_t other  # 0, or how far before it stands the one that is executed if it is skipped (negative)
    int16_t reads
    int16_t writes
    int16_t clobbers
    # How many strides: rows from an iteration to the next one, of each loop around it, the innermost first.
    int8_t depth
    int8_t pipe
    int8_t channel

cdef struct LoopRow:
    int64_t first  # of the code of its body
    int64_t end
    int64_t trip_count
    int32_t gain  # what an iteration adds to counts: where that begins, and how many
    int32_t gains

cdef struct GainRow:
    int64_t by
    int32_t counter

cdef struct RotatingRow:  # a slot that changes whenever a count goes on: choice (base + count) mod copies
    int64_t base
    int32_t counter
    int32_t copies
    int32_t choice  # the first choice

cdef struct TraceRow:  # of one trace, with places among those of all traces
    int64_t records
    int64_t code
    int64_t length  # of the code outside of loops
    int64_t loops
    int64_t gains
    int64_t slots
    int64_t strides
    int64_t rotating
    int64_t choices
    int64_t items
    int64_t cycles
    int64_t flags

cdef struct ProgramRow:
    int32_t trace
    int32_t step  # between its values in the table
    int64_t first  # of them

cdef struct Arrays:  # of all traces, or from where those of one trace begin
    const Record* records
    const int32_t* code
    const LoopRow* loops
    const GainRow* gains
    const int32_t* slots
    const int64_t* strides
    const RotatingRow* rotating
    const int64_t* choices  # where each choice begins among the items
    const int32_t* items
    const double* cycles
    const int8_t* flags  # per slot: whether it stands for a flag
    const double* table  # from a program's first value, if of one

cdef struct Traces:  # of a launch
    Arrays arrays
    const TraceRow* traces
    const ProgramRow* programs
    int64_t count  # programs
    int64_t depth, counters, slot_count  # the most of any trace
    int64_t used  # the most slots that one record reads and writes
    int first_pipe, pipes  # from there on so many are all that records are on

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
    int32_t instruction  # of the trace
    int32_t waited  # the record that the gap waited for, -1 if none
    int32_t pipe
    int32_t reason  # of the gap, -1 if there is none

cdef enum:  # kinds of an edge, above the number of its lane
    ENDS = 0
    GOES_ON = MAX_PIPES  # with the next record
    BEGINS = 2 * MAX_PIPES
    EDGES = 4 * MAX_PIPES  # of all lanes, at one time

cdef struct Edge:  # a pipe begins a record that takes time, or ends one; one at infinity comes last
    double time
    int32_t kind
    int32_t line

cdef struct Lane:  # what a pipe has done and is not charged to lines yet, and the edge before that
    Edge* edges
    int64_t room, head, tail
    double since  # the shared clock when the record at `head` began
    int count  # equal pipes that it stands for

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
    bint streaming  # or at a barrier
    int record  # the transfer that streams, or waits for the clock to start; the barrier
    double start, amount
    double gap, beyond  # of the record that started last
    int reason, waited

cdef struct Frame:  # a loop that the decoder is in
    const LoopRow* loop
    int64_t iteration, after, end

cdef struct Decoder:
    Arrays trace
    int64_t step  # between the program's values
    int64_t place, end  # in the code
    int depth
    Frame* frames
    int64_t* counts

cdef struct Dep:  # what a record waits for
    double time  # when that was done; UNKNOWN: ask `record`
    int record
    int code  # kind, and CROSSES if it is on another pipe

cdef struct Step:  # a record of the program that is on its way
    double done
    double amount  # bytes of a transfer
    double occupancy
    const Record* what
    int64_t dep
    int deps
    int unit

cdef struct Use:  # a record that reads a slot
    double time, latency
    int record, next
    int8_t pipe
    int8_t real  # it has waited for the slot's writer, so what waits for this need not wait for the writer
    int8_t listed  # among those whose time is not known

cdef struct Slot:  # the record that wrote it last, and those that have read it since
    double time
    int record, use
    int8_t pipe, listed

cdef struct Passed:  # the last record of a pipe that was not skipped
    double latency
    int record

cdef struct Core:
    int index, program
    int64_t count, left  # records so far, and those of them that are not done
    bint ended  # no more are to come
    Decoder decoder
    double begin
    Step* step  # per record
    Step* window  # what is kept of them: from record `low` to before `count`, in `room` places
    int64_t room, low
    Dep* dep
    Dep* dep_window
    int64_t dep_room, dep_low, dep_count
    Slot* slots
    int64_t slot_count
    Use* uses
    int64_t use_room
    int use_free, use_count
    int32_t* listed  # slots, and -1 - use, whose time is or was not known
    int64_t listed_count
    int32_t* used  # the slots that the next record reads, and those that it writes
    Passed passed[MAX_PIPES]
    Lane lanes[MAX_PIPES]
    double charged, shared  # time up to which lines are charged; the clock of pipes that share it
    double horizon  # when the last result so far is done, ...
    int64_t due  # edges of a pipe that are enough to charge some of them
    int charging  # busy pipes at `charged`
    int64_t last_line  # of the last one that was busy, -1 before any
    int final  # ... of which record, -1 if none
    int64_t final_line  # its line
    Stage stages[MAX_UNITS]
    unsigned int queued, streaming  # bit per pipe: records in its queue; a transfer under way
    Pipe pipes[MAX_PIPES]
    double* busy  # [pipes]
    double* stalls  # [pipes, REASONS]
    int64_t run  # records that it ran
    bint told  # whether they go into the timeline

cdef struct World:
    int pipes, units
    const PipeRow* pipe
    double cross, issue
    bint buffers  # whether records wait for buffers
    double now
    Sharing sharing
    Heap starts  # transfers that start after now, and barriers that a pipe arrives at
    Heap frees  # cores that will have finished their program
    double* line_busy  # [lines, pipes]
    double* line_stalls  # [lines, pipes, REASONS]
    double* channel_bytes
    int64_t instructions_run, late
    TimelineRow* timeline
    int64_t timeline_size, timeline_limit
    double timeline_until  # the least start of a record of a core that is told, which is not in it
    double* line_exposed
    bint by_line  # whether time is charged to lines
    int first_lane, lanes  # pipes that records are on
    bint full  # no memory for the state of a core
    int64_t met[BARRIERS]  # pipes that wait at a barrier of each kind
    int64_t expected[BARRIERS]  # pipes that must arrive until it is over

cdef inline const Record* record_of(const Core* core, int64_t r) noexcept nogil:
    """A record from `low` to before `count`."""
    return core.step[r].what

cdef inline bint is_known(const Core* core, int64_t r) noexcept nogil:
    """Whether it is known when a record was done; one that is forgotten is known."""
    return r < core.low or core.step[r].done >= 0
