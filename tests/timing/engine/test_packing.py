"""Records that are packed while they come in give, bit for bit, what they give when all of them are kept."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.engine.dependencies import dependencies
from ascendtile.simulator.timing.engine.engine import EngineResult, Group, Machine, Trace, simulate
from ascendtile.simulator.timing.engine.ragged import Ragged, pick_lists
from ascendtile.simulator.timing.trace.packing import Packer, Piece

from .engine_strategies import machines, numbers, some_cycles

SLOTS = 6
Rows = list[dict[str, Any]]


def rows(made: np.random.Generator, machine: Machine, columns: int, count: int) -> Rows:
    def slots() -> list[int]:
        return made.permutation(SLOTS)[: made.integers(0, 3)].tolist()

    def number(low: int, high: int) -> int:
        return int(made.integers(low, high + 1))

    return [
        {
            "pipe": number(0, len(machine.pipes) - 1),
            "occupancy": float(some_cycles(made, 1)[0]),
            "latency": float(some_cycles(made, 1)[0]),
            "channel": number(-1, len(machine.channels) - 1),
            "amount": number(0, 200),
            "column": number(-1, columns - 1),
            "instructions": number(0, 3),
            "line": number(0, 5),
            "reads": slots(),
            "writes": slots(),
            "clobbers": slots(),
        }
        for _ in range(count)
    ]


@st.composite
def programs(draw: st.DrawFn, **limits: Any) -> tuple[Machine, Rows, np.ndarray]:
    """A machine, the records of loops (with a loop inside each turn, now and then), and a table of two programs."""
    machine = draw(machines(**limits))
    made = numbers(draw)
    table = made.integers(-5, 61, (draw(st.integers(0, 2)), 2)).astype(float)
    out: Rows = []
    for _ in range(draw(st.integers(1, 3))):
        before, outer, inner, inside = (draw(st.integers(0, n)) for n in (3, 6, 2, 8))
        out += rows(made, machine, len(table), before)
        body, within = rows(made, machine, len(table), outer), rows(made, machine, len(table), inner)
        out += (body + within * inside) * draw(st.integers(1, 14))
    return machine, out, table


def piece_of(found: Rows, table: np.ndarray) -> Piece:
    names = ("pipe", "occupancy", "latency", "channel", "amount", "column", "instructions", "line")
    kinds = (np.int8, float, float, np.int8, float, np.int32, np.int32, np.int32)
    columns = {n: np.array([r[n] for r in found], k) for n, k in zip(names, kinds, strict=True)}
    skipped = np.append((table < 0).any(axis=1), False)[columns["column"]]
    return Piece(columns, skipped, *(ragged([r[n] for r in found]) for n in ("reads", "writes", "clobbers")))


def ragged(lists: list[list[int]]) -> Ragged:
    items = np.array([i for x in lists for i in x], np.int32)
    return Ragged(np.array([0, *np.cumsum([len(x) for x in lists])], np.int64), items)


def flat(piece: Piece, table: np.ndarray, flags: list[int]) -> Trace:
    found = dependencies(piece.reads, piece.writes, SLOTS, piece.clobbers, piece.conditional, flags)
    return Trace(**piece.columns, table=table, **found._asdict())


def packed(piece: Piece, table: np.ndarray, flags: list[int], size: int, near: int, least: int) -> Trace:
    packer = Packer(near, least)
    for first in range(0, len(piece.conditional), size):
        some = np.arange(first, min(first + size, len(piece.conditional)))
        columns = {n: x[some] for n, x in piece.columns.items()}
        lists = (pick_lists(x, some) for x in piece[2:])
        packer.add(Piece(columns, piece.conditional[some], *lists), flags)
    return packer.trace(table)


def results(machine: Machine, trace: Trace, programs: int, limit: int) -> EngineResult:
    return simulate(machine, [Group(trace=trace, programs=np.arange(programs))], limit)


def assert_same(a: EngineResult, b: EngineResult) -> None:
    for f in fields(EngineResult):
        x, y = np.asarray(getattr(a, f.name)), np.asarray(getattr(b, f.name))
        assert x.tobytes() == y.tobytes(), f.name


@given(
    programs(),
    st.sampled_from([1, 2, 7, 50, 10_000]),
    st.sampled_from([1, 3, 10, 4096]),
    st.sampled_from([1, 8, 40]),
    st.sampled_from([[], [0, 3]]),
    st.sampled_from([0, 10, 100_000]),
)
def test_packed_records_run_as_all_of_them_do(
    case: tuple[Machine, Rows, np.ndarray], size: int, near: int, least: int, flags: list[int], limit: int
) -> None:
    machine, found, table = case
    piece = piece_of(found, table)
    whole = flat(piece, table, flags)
    short = packed(piece, table, flags, size, near, least)
    assert short.records == whole.records
    assert_same(results(machine, whole, 2, limit), results(machine, short, 2, limit))


@given(programs(), st.sampled_from([1, 5, 10_000]), st.sampled_from([1, 8, 40]))
def test_every_record_is_found_again(case: tuple[Machine, Rows, np.ndarray], size: int, least: int) -> None:
    _, found, table = case
    piece = piece_of(found, table)
    trace = packed(piece, table, [], size, 10, least)
    kinds = trace.kinds_of(np.arange(trace.records))
    for name, column in piece.columns.items():
        assert np.array_equal(getattr(trace, name)[kinds], column), name
    assert trace.counts is not None
    assert trace.counts.tolist() == np.bincount(kinds, minlength=len(trace.pipe)).tolist()


def loop(turns: int, size: int) -> Piece:
    """Two loads in turn, a chain, a store."""
    body: Rows = []
    for k in range(2):
        names = ("pipe", "occupancy", "latency", "reads", "writes")
        steps = [(1, 5, 100, (), (k,)), (2, 7, 3, (k, 5), (2 + k,)), (3, 4, 50, (2 + k,), ())]
        body += [dict(zip(names, s, strict=True)) for s in steps]
    rest = {"channel": -1, "amount": 0, "column": -1, "instructions": 1, "line": 0, "clobbers": ()}
    first = {"pipe": 1, "occupancy": 9, "latency": 3, "reads": (), "writes": (5,)}
    found = [{**rest, **r} for r in [first, *body * turns, {**first, "reads": (5,)}]]
    return piece_of(found, np.empty((0, 0)))


@pytest.mark.parametrize("size", [1, 7, 600, 100_000])
def test_a_loop_is_one_run_however_it_comes_in(size: int) -> None:
    """Three kinds repeat: how far back a turn waits is the same for both buffers. Of all who read a slot, the last one
    of a pipe stands for the others."""
    turns = 200 if size == 1 else 1000  # each piece takes a millisecond, however small it is
    trace = packed(loop(turns, size), np.empty((0, 0)), [], size, 4096, 64)
    assert trace.runs is not None
    lengths = np.diff(np.append(trace.runs.start, trace.runs.records))
    assert lengths.max() > 6 * turns - 100
    assert trace.runs.length[lengths.argmax()] == 3
    assert len(trace.runs.order) < 100
    assert len(trace.pipe) < 30
    assert np.diff(trace.dep_start).max() <= 3


def test_whoever_is_waited_for_from_far_is_kept() -> None:
    piece = loop(1000, 1)
    trace = packed(piece, np.empty((0, 0)), [], 500, 100, 64)
    assert trace.runs is not None
    assert trace.runs.keep.tolist() == [0]
    assert trace.dep.min() == -1
    assert trace.dep.max() <= 100
