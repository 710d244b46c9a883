"""A slow simulator of the rules in engine.py, written to be believed: it shares no algorithm with the engine.

The engine computes each core ahead of the clock and keeps one rate per channel. This one only ever looks at
the present: at each moment it lets everything happen that can happen now, until nothing more does, then goes
to the next moment at which anything changes. Each transfer keeps its own remaining bytes and its own rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ascendtile.simulator.timing.engine.engine import Machine
from ascendtile.simulator.timing.engine.trace import BARRIER

from .engine_builder import Part, Records

REACHED = 1e-9  # bytes: a flow with less than this left has ended


@dataclass
class Flow:
    channel: int
    left: float
    rate: float = 0.0


@dataclass
class Run:
    """One program on one core."""

    number: int
    trace: Records
    column: int
    begin: float
    queues: list[list[int]]
    order: dict[str, list[int]]
    stage: dict[str, float]
    pipe_free: list[float]
    start: dict[int, float] = field(default_factory=dict)
    end: dict[int, float] = field(default_factory=dict)
    done: dict[int, float] = field(default_factory=dict)
    issued: dict[int, float] = field(default_factory=dict)
    flows: dict[int, Flow] = field(default_factory=dict)

    def value(self, r: int) -> float | None:
        column = int(self.trace.column[r])
        return None if column < 0 else float(self.trace.table[column, self.column])

    def skipped(self, r: int) -> bool:
        value = self.value(r)
        return value is not None and value < 0

    def done_at(self, r: int) -> float:
        """Infinity when it is not known now."""
        while self.skipped(r):
            before = [q for q in range(r) if self.trace.pipe[q] == self.trace.pipe[r]]
            if not before:
                return self.begin
            r = before[-1]
        return self.done.get(r, math.inf)


def fair(flows: Sequence[Flow], machine: Machine) -> None:
    """Set max-min fair rates: again and again find the tightest limit and fix the flows under it."""
    open_flows = list(flows)
    left = [r.bytes_per_cycle for r in machine.resources]
    while open_flows:
        limits = [(machine.channels[f.channel].port_bytes_per_cycle, [f]) for f in open_flows]
        for j, capacity in enumerate(left):
            shares = [machine.channels[f.channel].resources.count(j) for f in open_flows]
            if any(shares):
                users = [f for f, n in zip(open_flows, shares, strict=True) if n]
                limits.append((capacity / sum(shares), users))
        rate, fixed = min(limits, key=lambda limit: limit[0])
        for flow in fixed:
            flow.rate = rate
            open_flows = [f for f in open_flows if f is not flow]
            for j in machine.channels[flow.channel].resources:
                left[j] -= rate


class Reference:
    """Runs all programs on construction; results by program."""

    def __init__(self, machine: Machine, parts: Sequence[Part]) -> None:
        self.machine, self.now, self.turn = machine, 0.0, 0.0
        self.waiting = sorted((int(n), g.records, j) for g in parts for j, n in enumerate(g.programs))
        self.cores: list[Run | None] = [None] * machine.cores
        self.runs: dict[int, Run] = {}
        self.ends: dict[int, float] = {}
        self.core_of: dict[int, int] = {}
        self.moments: set[float] = set()
        self.rooms: dict[int, list[tuple[Run, int, int]]] = {}
        self.expected = {
            c: sum(
                len({p for p, k in zip(t.pipe, t.channel, strict=True) if k == c}) for _, t, _ in self.waiting
            )
            for c in {int(k) for _, t, _ in self.waiting for k in t.channel if k <= BARRIER}
        }
        for core in range(machine.cores):
            self.hand_out(core, 0.0, machine.core_start_cycles)
        while any(self.cores):
            self.present()
            self.go_to_next_moment()
        self.cycles = max(self.ends.values())

    def hand_out(self, core: int, dispatch: float, start: float) -> None:
        self.cores[core] = None
        if not self.waiting:
            return
        number, trace, column = self.waiting.pop(0)
        begin = max(self.now, self.turn) + dispatch
        self.turn = begin - dispatch + start
        pipes, units = self.machine.pipes, self.machine.units
        run = Run(
            number,
            trace,
            column,
            begin,
            [[] for _ in pipes],
            {},
            dict.fromkeys(units, begin),
            [begin] * len(pipes),
        )
        for unit in units:
            mine = [
                r for r in range(trace.records) if pipes[trace.pipe[r]].unit == unit and not run.skipped(r)
            ]
            run.order[unit] = mine
        self.cores[core] = self.runs[number] = run
        self.core_of[number] = core
        self.moments.add(begin)

    def present(self) -> None:
        moved = True
        while moved:
            moved = False
            for run in self.cores:
                if run is not None and run.begin <= self.now:
                    while self.try_pipes(run) or self.try_stages(run):
                        moved = True
            for channel, room in self.rooms.items():
                if len(room) == self.expected[channel]:
                    self.rooms[channel], moved = [], True
                    for run, p, r in room:
                        self.end(run, p, r, self.now)
            for core, run in enumerate(self.cores):
                if run is not None and not moved and self.over(run):
                    self.ends[run.number] = self.now
                    self.hand_out(core, self.machine.dispatch_cycles, self.machine.start_cycles)
                    moved = True

    def over(self, run: Run) -> bool:
        """Begun, nothing left to issue, and every result usable now."""
        idle = not any(run.order.values()) and not any(run.queues)
        known = [run.done.get(r, math.inf) for r in run.start]
        return run.begin <= self.now and idle and all(t <= self.now for t in known)

    def ready(self, run: Run, r: int) -> bool:
        first, last = run.trace.dep_start[r], run.trace.dep_start[r + 1]
        for q in run.trace.dep[first:last]:
            crosses = run.trace.pipe[q] != run.trace.pipe[r]
            at = run.done_at(int(q)) + self.machine.cross_pipe_cycles * crosses
            if at > self.now:
                self.moments.add(at)
                return False
        return True

    def try_stages(self, run: Run) -> bool:
        for unit, order in run.order.items():
            if not order or not math.isfinite(run.stage[unit]):
                continue
            r = order[0]
            p = int(run.trace.pipe[r])
            at = run.stage[unit] + self.machine.issue_cycles * float(run.trace.instructions[r])
            self.moments.add(at)
            if at > self.now:
                continue
            if self.machine.pipes[p].scalar:
                if run.pipe_free[p] <= self.now and self.ready(run, r):
                    order.pop(0)
                    run.issued[r] = at
                    self.start(run, p, r)
                    run.stage[unit] = run.pipe_free[p]
                    return True
            elif len(run.queues[p]) < self.machine.pipes[p].queue_depth:
                run.queues[p].append(order.pop(0))
                run.stage[unit] = run.issued[r] = self.now
                return True
        return False

    def try_pipes(self, run: Run) -> bool:
        for p, queue in enumerate(run.queues):
            if queue and run.pipe_free[p] <= self.now and self.ready(run, queue[0]):
                self.start(run, p, queue.pop(0))
                return True
        return False

    def start(self, run: Run, p: int, r: int) -> None:
        run.start[r] = self.now
        value, channel = run.value(r), int(run.trace.channel[r])
        cost = float(run.trace.occupancy[r]) if value is None or channel >= 0 else value
        amount = float(run.trace.amount[r]) if value is None else value
        if channel <= BARRIER:
            self.rooms.setdefault(channel, []).append((run, p, r))
            run.pipe_free[p] = math.inf
        elif channel >= 0 and amount > 0:
            run.flows[r] = Flow(channel, amount)
            run.pipe_free[p] = math.inf
        else:
            self.end(run, p, r, self.now + cost)

    def end(self, run: Run, p: int, r: int, free: float) -> None:
        run.end[r] = run.pipe_free[p] = free
        run.done[r] = free + float(run.trace.latency[r])
        self.moments |= {free, run.done[r]}
        if self.machine.pipes[p].scalar:
            run.stage[self.machine.pipes[p].unit] = free

    def go_to_next_moment(self) -> None:
        flows = [(run, r, flow) for run in self.cores if run for r, flow in run.flows.items()]
        fair([f for _, _, f in flows], self.machine)
        self.moments = {t for t in self.moments if self.now < t < math.inf}
        next_time = min([*self.moments, *(self.now + f.left / f.rate for _, _, f in flows)], default=math.inf)
        if next_time == math.inf:
            assert not any(self.cores), "the reference hangs"
            return
        for run, r, flow in flows:
            flow.left -= flow.rate * (next_time - self.now)
            if flow.left < REACHED:
                del run.flows[r]
                p = int(run.trace.pipe[r])
                self.end(run, p, r, max(next_time, run.start[r] + float(run.trace.occupancy[r])))
        self.now = next_time
