"""The discrete-event engine: instruction records become cycles of pipes, cores and shared bandwidth.

It knows neither kernels nor products. The rules:

* Programs are handed out in launch order; cores begin their first one `core_start_cycles` after each other, and one that has
  finished a program (latencies included) takes the next after `dispatch_cycles`. Of several free cores the lowest number
  goes first.
* A unit's scalar stage issues the unit's records in program order, `issue_cycles` per instruction, then waits
  for room: record k of a pipe needs record k - queue_depth of that pipe to have started. Records of a scalar
  pipe execute in line: the stage waits for their dependencies and is taken for their occupancy.
* A pipe executes its records in order. A record starts when its pipe is free, it has been issued, and every
  dependency is done (`cross_pipe_cycles` later if that was on another pipe).
* Fixed cost: the pipe is free after the occupancy. Transfer: it streams its bytes from the start on, and the
  pipe is free when the last byte has passed, but not before the occupancy is over. Both: done `latency` after
  that.
* Transfers share bandwidth max-min fairly: each is limited by its channel's port and by the channel's
  resources. One of two ports takes two shares of what both use.
* A record whose channel is a barrier (`BARRIER`) waits, once it could start, until all pipes of all programs that
  have one of that kind have arrived at theirs. It takes no time of its own; the wait is a stall of its pipe, for a flag.
* Records wait for those that touch the slots that they use: a read for the last writer (data), a write for the readers since
  then and for the writer (buffer; a flag where the slot stands for one), a clobber as a write does.
* A record that a program skips takes no time, no issue and no place in a queue; it is done together with the
  record before it on its pipe (at the program's start if there is none).

Time is plain doubles in one thread and ties are broken by fixed order: the same input gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ascendtile.simulator.errors import RunError, UsageError
from ascendtile.simulator.timing.engine import _engine
from ascendtile.simulator.timing.engine._code import Code
from ascendtile.simulator.timing.engine.inputs import Channel, Machine, PipeSpec, Resource
from ascendtile.simulator.timing.engine.layout import SPAN, TIMELINE, Layout, lay_out
from ascendtile.simulator.timing.engine.trace import BUFFER, DATA, FLAG, Array, ProgramGroup, Trace

__all__ = [
    "BUFFER",
    "DATA",
    "FLAG",
    "REASONS",
    "Channel",
    "EngineResult",
    "Machine",
    "PipeSpec",
    "ProgramGroup",
    "Resource",
    "Trace",
    "simulate",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

REASONS = ("data", "buffer", "flag", "issue", "bandwidth", "tail")


class EngineResult(NamedTuple):
    """What a run took. Per core and pipe, in cycles and up to rounding:

        busy + data + buffer + flag + issue + tail stalls + dispatch = core_cycles

    and per machine `line_exposed.sum() + core_dispatch.sum() == core_cycles.sum()`.

    Args:
        cycles: from the launch to the last core being done.
        core_cycles: [cores] when the core's last program was done; 0 for a core without any.
        core_programs, core_records: [cores] programs and records that it ran.
        core_dispatch: [cores] cycles spent on taking programs.
        busy: [cores, pipes] cycles that the pipe is taken, streaming included.
        stalls: [cores, pipes, REASONS] cycles that the pipe is free before a record starts, by what the start
            waited for: data, buffer, a flag, or issue; tail is from the pipe's last record to the program's
            end. Bandwidth is part of busy: streaming cycles beyond bytes / port rate.
        line_busy: [lines, pipes] busy cycles by source line, summed over cores.
        line_stalls: [lines, pipes, REASONS] stalls by the line of the record that waits, summed over cores:
            those of `stalls`, but for the tail, which belongs to no record.
        line_exposed: [lines] summed over cores: every cycle of a program on its core, charged to lines. Busy
            pipes share the time evenly, twins too; while none is busy the last one that was is charged.
        resource_bytes, channel_bytes: [resources], [channels] bytes that passed.
        records_run, instructions_run: without skipped records; a twin's instructions count too.
        late_starts: transfers that were found after the clock had passed their start; 0 unless the engine is
            wrong.
        programs: rows (start, end, core), by launch number.
        timeline: rows of the cores that were asked for, in the order in which they were computed: start, end (when
            the pipe is free) and done;
            gap: cycles for which the pipe had been free since the record before (since the program's start,
            if there is none); reason of the gap, a number in REASONS, and waited: the record of the same
            program that it waited for, -1 if none (issue: what the scalar stage had waited for last; for one
            that is skipped the one before it on its pipe); both are -1 where there is no gap;
            beyond: cycles of a transfer that sharing bandwidth added; amount: its bytes; core, program,
            record (its number among those that the program does not skip), instruction (of the trace), pipe.
        timeline_until: every record of those cores that starts before that is in the timeline; infinite if all are.
    """

    cycles: float
    core_cycles: Floats
    core_programs: Ints
    core_records: Ints
    core_dispatch: Floats
    busy: Floats
    stalls: Floats
    line_busy: Floats
    line_stalls: Floats
    line_exposed: Floats
    resource_bytes: Floats
    channel_bytes: Floats
    records_run: int
    instructions_run: int
    late_starts: int
    programs: Array
    timeline: Array
    timeline_until: float


def simulate(
    machine: Machine,
    groups: Sequence[ProgramGroup],
    timeline_limit: int = 0,
    by_line: bool = True,
    buffers: bool = True,
    code: Code | None = None,
    cores: Sequence[int] | None = None,
) -> EngineResult:
    """Run all programs of the groups; keep the first `timeline_limit` records of these cores (all, if not given).

    by_line: False leaves out what is charged to which line (`line_exposed`), which takes a quarter of the time.
    buffers: False lets no record wait for a buffer that others still read.
    code: of the groups, if somebody has it.

    Raises:
        UsageError: the groups name a pipe or channel that the machine lacks, or their launch numbers have
            gaps.
        RunError: nothing can progress (impossible with checked traces).
    """
    if timeline_limit < 0:
        raise UsageError(f"timeline_limit is {timeline_limit}, it must be at least 0")
    if not sum(len(g.programs) for g in groups):
        raise UsageError("the groups have 0 programs, at least 1 is needed")
    layout = lay_out(machine, groups, code)
    output = _Output.zeros(machine, layout, timeline_limit)
    output.told[slice(None) if cores is None else list(cores)] = 1
    stuck = _run(machine, layout, output, by_line, buffers)
    if stuck is not None:
        core, program, record = stuck
        raise RunError(f"hang: core {core} cannot go on with program {program} at record {record}")
    return output.result(machine)


class _Output(NamedTuple):
    core_cycles: Floats
    core_dispatch: Floats
    core_programs: Ints
    core_records: Ints
    busy: Floats
    stalls: Floats
    line_busy: Floats
    line_stalls: Floats
    line_exposed: Floats
    channel_bytes: Floats
    spans: Array
    told: npt.NDArray[np.uint8]
    timeline: Array
    timeline_until: Floats
    counters: Ints

    @classmethod
    def zeros(cls, machine: Machine, layout: Layout, timeline_limit: int) -> _Output:
        cores, pipes = machine.cores, len(machine.pipes)
        rows = min(timeline_limit, layout.records)
        return cls(
            core_cycles=np.zeros(cores),
            core_dispatch=np.zeros(cores),
            core_programs=np.zeros(cores, np.int64),
            core_records=np.zeros(cores, np.int64),
            busy=np.zeros((cores, pipes)),
            stalls=np.zeros((cores, pipes, len(REASONS))),
            line_busy=np.zeros((layout.lines, pipes)),
            line_stalls=np.zeros((layout.lines, pipes, len(REASONS))),
            line_exposed=np.zeros(layout.lines),
            channel_bytes=np.zeros(len(layout.channels)),
            spans=np.zeros(layout.programs, SPAN),
            told=np.zeros(cores, np.uint8),
            timeline=np.zeros(rows + 1, TIMELINE),
            timeline_until=np.zeros(1),
            counters=np.zeros(3, np.int64),
        )

    def result(self, machine: Machine) -> EngineResult:
        instructions, late, rows = (int(n) for n in self.counters)
        resource_bytes = np.zeros(len(machine.resources))
        for channel, amount in zip(machine.channels, self.channel_bytes, strict=False):
            np.add.at(resource_bytes, list(channel.resources), amount)
        ports = [c.ports for c in machine.channels]
        return EngineResult(
            cycles=float(self.core_cycles.max()),
            core_cycles=self.core_cycles,
            core_programs=self.core_programs,
            core_records=self.core_records,
            core_dispatch=self.core_dispatch,
            busy=self.busy,
            stalls=self.stalls,
            line_busy=self.line_busy,
            line_stalls=self.line_stalls,
            line_exposed=self.line_exposed,
            resource_bytes=resource_bytes,
            channel_bytes=self.channel_bytes[: len(ports)] * ports,
            records_run=int(self.core_records.sum()),
            instructions_run=instructions,
            late_starts=late,
            programs=self.spans,
            timeline=self.timeline[:rows],
            timeline_until=float(self.timeline_until[0]),
        )


def _run(
    machine: Machine, layout: Layout, output: _Output, by_line: bool, buffers: bool
) -> tuple[int, int, int] | None:
    cores = min(machine.cores, layout.programs)
    places = int(layout.pipes["depth"].sum())
    return _engine.run(
        layout.pipes,
        len(machine.units),
        layout.channels,
        layout.capacity,
        machine.dispatch_cycles,
        machine.core_start_cycles,
        machine.cross_pipe_cycles,
        machine.issue_cycles,
        layout.expected,
        layout.code,
        np.empty((cores, places)),
        np.empty((cores, 2, places), np.int32),
        output.core_cycles,
        output.core_dispatch,
        output.core_programs,
        output.core_records,
        output.busy,
        output.stalls,
        output.line_busy,
        output.line_stalls,
        output.line_exposed,
        output.channel_bytes,
        output.spans,
        output.told,
        output.timeline,
        output.timeline_until,
        output.counters,
        by_line,
        buffers,
    )
