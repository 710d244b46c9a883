"""Plays inputs: one by its number, or as many as there is time for."""

from __future__ import annotations

import base64
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .judge import Bench, Finding, alone_in, watched
from .mutators import Chance
from .targets import TARGETS

MOST_SHOWN = 6000  # characters of a file


@dataclass
class Tally:
    """inputs: how many were tried. accepted: commands and calls that the product answered. slowest: seconds and number."""

    inputs: int = 0
    accepted: int = 0
    slowest: tuple[float, int] = (0.0, 0)


def play(target: str, number: int) -> int:
    """Try one input; how often the product accepted it. `Finding` says what is wrong, and how to see it again."""
    chance = Chance(target, number)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as base, alone_in(Path(base) / "x") as bench:
        try:
            with watched(f"{target} {number}"):
                TARGETS[target](chance, bench)
            check_left(bench)
        except Exception as error:
            raise Finding(told(target, number, chance, bench, error)) from error
        return bench.accepted


def check_left(bench: Bench) -> None:
    """What the product read is there as it was, and nothing half-written is."""
    for name, data in bench.tried.items():
        path = bench.folder / name
        if not path.suffix == ".sqlite" and (not path.is_file() or path.read_bytes() != data):
            raise Finding(f"{name} was changed, and was only to be read")
    if parts := [*bench.folder.rglob("*.part")]:
        raise Finding(f"{parts} were left behind")


def told(target: str, number: int, chance: Chance, bench: Bench, error: Exception) -> str:
    what = str(error) if isinstance(error, Finding) else "".join(traceback.format_exception(error, limit=-6))
    lines = [
        f"{target} {number}: {what}",
        f"again: python -m tests.fuzz {target} --number {number}",
        "changes:",
    ]
    lines += [f"  {x}" for x in chance.log]
    for name, data in bench.tried.items():
        lines.append(f"{name}, {len(data)} bytes: {_shown(data)}")
    return "\n".join(lines)


def _shown(data: bytes) -> str:
    text = repr(data)
    if len(text) < MOST_SHOWN and text.isprintable() and text.count("\\x") < 100:
        return text
    packed = base64.b85encode(zlib.compress(data, 9)).decode()
    return (
        f"zlib.decompress(base64.b85decode({packed!r}))"
        if len(packed) < 10 * MOST_SHOWN
        else f"{text[:MOST_SHOWN]}..."
    )


def play_for(
    target: str, seconds: float, first: int = 0, told_of: Callable[[Finding], None] | None = None
) -> Tally:
    """Inputs from number `first` on, for so much time of the processor; the first finding ends it if nobody is told."""
    tally, began, number = Tally(), time.process_time(), first
    while time.process_time() - began < seconds:
        start = time.process_time()
        try:
            tally.accepted += play(target, number) > 0
        except Finding as finding:
            if told_of is None:
                raise
            told_of(finding)
        tally.slowest = max(tally.slowest, (time.process_time() - start, number))
        tally.inputs, number = tally.inputs + 1, number + 1
    return tally
