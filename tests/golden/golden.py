"""What a case of the golden file gives, and how it is compared: cycles within 1e-9, bytes, peaks and values exactly."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import ascendtile.simulator as sim

from .cases import Case

FILE = Path(__file__).with_name("golden.jsonl")
RELATIVE = 1e-9
LINE = re.compile(r"\bline (\d+)")


def _warned(launch: Any) -> list[str]:
    """The source line that each warning names, "" where it names none: texts and line numbers may change, these may not."""
    texts = {line.line: line.source.strip() for line in launch.lines}
    found = [LINE.search(words) for words in launch.warnings]
    return sorted("" if m is None else texts.get(int(m[1]), "") for m in found)


def _launch(launch: Any) -> dict[str, Any]:
    pipes = {
        n: [p.busy_cycles, *(p.stalls[k] for k in sorted(p.stalls))] for n, p in sorted(launch.pipes.items())
    }
    return {
        "kernel": launch.kernel,
        "cycles": launch.cycles,
        "time_us": launch.time_us,
        "instructions": launch.instructions,
        "pipes": pipes,
        "bytes": dict(sorted(launch.resources.items())),
        "moved": {n: math.fsum(x) for n, x in sorted(launch.core_bytes.items())},
        "peaks": {n: b.peak_bytes for n, b in sorted(launch.buffers.items())},
        "bounds": dict(sorted(launch.bounds.items())),
        "warnings": _warned(launch),
    }


def _hash(x: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(x).view(np.uint8).tobytes()).hexdigest()[:16]


def observe(case: Case) -> dict[str, Any]:
    """The figures of one case; an error that the device would raise is its class and the numbers in it."""
    with sim.device(case.product, timeline=1, **case.switches):
        try:
            arrays, launches = case.work()
        except (sim.RunError, sim.UsageError) as e:
            return {"error": _public(e)}
    return {
        "launches": [_launch(x) for x in launches],
        "values": {n: _hash(x) for n, x in sorted(arrays.items())},
    }


def _public(e: Exception) -> str:
    return next(c.__name__ for c in type(e).__mro__ if not c.__name__.startswith("_"))


def read(path: Path = FILE) -> dict[str, Any]:
    """Figures by name of case."""
    rows = (json.loads(line) for line in path.read_text().splitlines())
    return {row.pop("case"): row for row in rows}


def write(figures: dict[str, Any], path: Path = FILE) -> None:
    """One line a case, in the order of their names, so that a change shows as the lines that it touches."""
    path.write_text("".join(json.dumps({"case": n, **figures[n]}) + "\n" for n in sorted(figures)))


def differences(was: Any, now: Any, at: str = "") -> Iterable[str]:
    """Each place where two trees of figures differ; numbers with a fraction within 1e-9 of each other are equal."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in {**was, **now}:
            if key not in was or key not in now:
                yield f"{at}/{key} {'is gone' if key in was else 'is new'}"
            else:
                yield from differences(was[key], now[key], f"{at}/{key}")
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for k, (a, b) in enumerate(zip(was, now, strict=True)):
            yield from differences(a, b, f"{at}/{k}")
    elif isinstance(was, float) or isinstance(now, float):
        if not math.isclose(was, now, rel_tol=RELATIVE, abs_tol=RELATIVE):
            yield f"{at} {was!r} is {now!r}"
    elif was != now:
        yield f"{at} {was!r} is {now!r}"
