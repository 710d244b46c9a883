"""Our engine beside Triton's interpreter: in turn, on the same kernels and data, in CPU seconds.

    python -m side_by_side.compare [--rounds 2] [--only TEXT] [--theirs FILE]        in tests/bench

A Python with triton is named by ASCENDTILE_TRITON_PYTHON, else this one is asked. Each engine runs in a process
of its own that goes on over all cases, limited to one thread of numpy's. Ours computes values
(in the exact order of the Cube) and time.

A launch is counted from call to return, and ours in three ways, each with the factor that the interpreter takes:

* first: the first launch of the case in the process; it also compiles the kernel and imports what is imported late
* other data: the same launch with arrays that no launch had before; nothing but the compiled kernel is there already
* identical: the launch before once more, same arrays; its time on the device is remembered, its values are not

The first counts once; of the others, and of the interpreter, which remembers nothing, the least of the rounds counts.
`--theirs FILE` keeps the interpreter's figures in a file and takes them from there if they are there: for work on our side.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cases import FULL, Case

HERE = Path(__file__).resolve().parent.parent
ONE_THREAD = {n: "1" for n in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


def triton_python() -> str | None:
    """A Python that has triton: the one the environment names, else this one; None if neither has it."""
    python = os.environ.get("ASCENDTILE_TRITON_PYTHON") or sys.executable
    probe = subprocess.run([python, "-c", "import triton, torch"], capture_output=True, check=False)
    return None if probe.returncode else python


class Worker:
    """An engine in a process of its own; `run_case` runs one case once."""

    def __init__(self, engine: str, python: str = sys.executable) -> None:
        self.engine = engine
        self.process = subprocess.Popen(
            [python, "-m", "side_by_side.worker", engine],
            cwd=HERE,
            env={**os.environ, **ONE_THREAD},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.engine}: the worker ended with status {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run_case(self, case: Case, again: bool = False) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(json.dumps([case.name, again]), file=self.process.stdin, flush=True)
        answer = self.answer()
        if not answer["good"]:
            raise RuntimeError(f"{self.engine}, {case.name}: errors {answer['errors']}")
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@dataclass(frozen=True)
class Row:
    """CPU seconds of one case: the interpreter's, and ours in the three ways."""

    case: Case
    theirs: float
    first: float
    other_data: float
    identical: float

    @property
    def ours(self) -> tuple[float, float, float]:
        return self.first, self.other_data, self.identical

    @property
    def factors(self) -> tuple[float, float, float]:
        first, other_data, identical = (self.theirs / seconds for seconds in self.ours)
        return first, other_data, identical


class Kept:
    """The interpreter's seconds by case in a file, for those who measure only our side again."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.seconds: dict[str, float] = json.loads(path.read_text()) if path and path.exists() else {}

    def keep(self, case: Case, seconds: float) -> None:
        self.seconds[case.name] = min(seconds, self.seconds.get(case.name, math.inf))
        if self.path:
            self.path.write_text(json.dumps(self.seconds, indent=1))


def compare(cases: list[Case], rounds: int, python: str | None, kept: Kept) -> list[Row]:
    """Both engines in turn; the interpreter only where its figures are not kept."""
    ours = Worker("ascendtile")
    theirs = Worker("triton", python) if python else None
    rows = []
    for case in cases:
        known = case.name in kept.seconds
        first = ours.run_case(case)["seconds"]
        found = []
        for _ in range(rounds):
            found.append([ours.run_case(case, again)["seconds"] for again in (False, True)])
            if theirs and not known:
                kept.keep(case, theirs.run_case(case)["seconds"])
        rows.append(
            Row(case, kept.seconds.get(case.name, math.nan), first, *map(min, zip(*found, strict=True)))
        )
        print(line(rows[-1]), file=sys.stderr)
    for worker in filter(None, (ours, theirs)):
        worker.close()
    return rows


def line(row: Row) -> str:
    ours = (f"{s:.4f} ({f:.0f}x)" for s, f in zip(row.ours, row.factors, strict=True))
    return f"| {row.case.name} | {row.theirs:.2f} | {' | '.join(ours)} |"


def means(rows: list[Row]) -> tuple[float, ...]:
    """Geometric means of the factors: first, other data, identical."""
    columns = zip(*(r.factors for r in rows), strict=True)
    return tuple(math.exp(sum(map(math.log, column)) / len(rows)) for column in columns)


def table(rows: list[Row]) -> str:
    head = ["| case | interpreter CPU s | first | other data | identical |", "|---|---|---|---|---|"]
    named, others = ([r for r in rows if r.case.named is named] for named in (True, False))
    told = [
        f"geometric mean of {len(some)} cases {which}: " + ", ".join(f"{f:.0f}x" for f in means(some))
        for some, which in ((named, "that the goal names"), (others, "besides"))
        if some
    ]
    return "\n".join([*head, *(line(r) for r in rows), "", *told])


def main() -> None:
    parser = argparse.ArgumentParser(description="Our engine beside Triton's interpreter")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--theirs", type=Path, help="file that keeps the interpreter's figures")
    options = parser.parse_args()
    cases = [case for case in FULL if options.only in case.name]
    python = triton_python()
    kept = Kept(options.theirs)
    if python is None and any(case.name not in kept.seconds for case in cases):
        sys.exit("triton is not installed here; name a Python that has it in ASCENDTILE_TRITON_PYTHON")
    print(table(compare(cases, options.rounds, python, kept)))


if __name__ == "__main__":
    main()
