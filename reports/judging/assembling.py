"""From judged cases to one verdict: times added up, the worst case, the line that costs, KernelBench's keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...simulator.products import Product
from .answer_log import FIT, RAISED, Ended, LaunchLog
from .costs import CaseCost, cost_of, summed_host, summed_reference
from .judged_case import JudgedCase
from .suspicions import TextFacts, cheats_of, with_cheats
from .tasks.comparing import one_report
from .tasks.files import AnswerError
from .verdict import (
    CORRECT,
    NO_FIT,
    NOT_COMPILED,
    SO_FAR,
    VERDICTS,
    WRONG,
    BufferFit,
    CaseVerdict,
    ComparedOutput,
    DearLine,
    LaunchTime,
    NearestBound,
    Verdict,
)

DEVICE = "ascendtile, simulated"
TRIALS = 2  # calls with values
UB = "UB"


def not_compiled(error: AnswerError, product: str) -> Verdict:
    """Of an answer that is no module, or has no entry."""
    return Verdict(
        verdict=NOT_COMPILED,
        message=str(error).splitlines()[0],
        compiled=False,
        product=product,
        metadata={
            **_hardware(product),
            "compilation_error_name": error.kind,
            "compilation_error": str(error),
        },
    )


def worst(cases: Sequence[JudgedCase]) -> JudgedCase:
    """The case whose verdict is the verdict of all; the first of several."""
    return min(cases, key=lambda case: VERDICTS.index(case.verdict))


def _hardware(product: str) -> dict[str, str]:
    return {"hardware": product, "device": DEVICE}


# ---- KernelBench's keys ----


def metadata_of(cases: Sequence[JudgedCase], product: str) -> dict[str, Any]:
    """As its evaluation fills it: errors by stage, differences of outputs, trials."""
    case = worst(cases)
    found: dict[str, Any] = _hardware(product)
    if case.end is not None:
        kind = "runtime_error" if case.end.reason == RAISED else "compilation_error"
        found |= {f"{kind}_name": case.end.name, kind: case.end.text}
    elif case.failed:
        found |= {"runtime_error_name": "ProcessEnded", "runtime_error": case.failed}
    outputs = [x for c in cases for x in c.outputs or ()]
    if outputs:
        passed = sum(c.verdict in (CORRECT, SO_FAR) for c in cases)
        found["correctness_trials"] = f"({TRIALS * passed} / {TRIALS * len(cases)})"
    bad = [x for x in outputs if not x.passed]
    if bad:
        found |= {"correctness_issue_name": "correctness_issue", "correctness_issue": bad[0].message}
        found["max_difference"] = [f"{x.max_abs:.6f}" for x in bad if x.max_abs is not None]
        found["avg_difference"] = [f"{x.mean_abs:.6f}" for x in bad if x.mean_abs is not None]
    return found


def stats(times_us: float | None, product: str) -> dict[str, Any]:
    """KernelBench's runtime_stats of one time, which is the same each time."""
    if times_us is None:
        return {}
    ms = times_us / 1e3
    return {"mean": ms, "std": 0.0, "min": ms, "max": ms, "num_trials": 1, **_hardware(product)}


# ---- figures of the launches ----


def launches_of(cases: Iterable[JudgedCase]) -> list[LaunchLog]:
    """Those of one call of each case."""
    return [launch for case in cases if case.calls for launch in case.calls[0].launches]


def launch_times(logs: Iterable[LaunchLog]) -> tuple[LaunchTime, ...]:
    """Equal ones together, dearest first."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for x in logs:
        counts[x.kernel, x.grid, x.time_us / x.count, round(x.cycles / x.count)] += x.count
    rows = [
        LaunchTime(kernel=k, grid=grid, time_us=us, cycles=cycles, count=n)
        for (k, grid, us, cycles), n in counts.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.time_us * row.count, row.kernel, row.grid)))


def nearest_bound(logs: Sequence[LaunchLog]) -> NearestBound | None:
    """The bounds of the launches added up, under the name of the one that takes longest."""
    bounds = [(x, x.run.get("bound")) for x in logs]
    known = [(x, b) for x, b in bounds if isinstance(b, Mapping)]
    time_us = sum(x.time_us for x in logs)
    if not known or not time_us:
        return None
    allowed = sum(x.count * float(b["time_us"]) for x, b in known)
    name = max(known, key=lambda pair: pair[0].time_us)[1]["name"]
    return NearestBound(name=str(name), time_us=allowed, share=min(1.0, allowed / time_us))


def interval(logs: Sequence[LaunchLog], rest_us: float) -> tuple[float, float] | None:
    """Where a board's time is expected: the launches' own intervals added up, where all have one; rest_us beside them."""
    if not logs or any(x.low_us is None or x.high_us is None for x in logs):
        return None
    low, high = (sum(getattr(x, n) for x in logs) for n in ("low_us", "high_us"))
    return low + rest_us, high + rest_us


def ub_of(logs: Iterable[LaunchLog], ends: Iterable[Ended]) -> BufferFit | None:
    """UB at its worst point, or what overflows it."""
    for end in ends:
        if end.reason == FIT and end.space in (UB, ""):
            bits, available = 8 * end.need_bytes, 8 * end.have_bytes
            return BufferFit(
                bits=bits,
                available_bits=available,
                peak_bytes=end.need_bytes,
                fits=False,
                message=end.text.splitlines()[0],
            )
    found = [buffer for x in logs if isinstance(buffer := x.run.get("buffers", {}).get(UB), Mapping)]
    if not found:
        return None
    most = max(found, key=lambda b: b["placed_bits"])
    return BufferFit(
        bits=most["placed_bits"],
        available_bits=most["capacity_bits"],
        peak_bytes=most["peak_bytes"],
        fits=True,
    )


def dear_line(logs: Sequence[LaunchLog]) -> DearLine | None:
    """The line of source that takes most of the time of all launches."""
    costs: Counter[tuple[str, int, str]] = Counter()
    for x in logs:
        lines = x.run.get("lines") or ()
        whole = sum(line["cycles"] for line in lines)
        for line in lines if whole else ():
            costs[str(line["file"]), line["line"], str(line["source"])] += x.time_us * line["cycles"] / whole
    if not costs:
        return None
    (file, line, text), us = max(costs.items(), key=lambda item: (item[1], item[0]))
    share = us / sum(x.time_us for x in logs)
    name = file.rpartition("/")[2]
    return DearLine(
        file=name, line=line, text=text.strip(), share=min(1.0, share), us=us, why=_why(logs, line)
    )


def _why(logs: Sequence[LaunchLog], line: int) -> str:
    """What the compiler makes slow code of, or what the pipe that binds waits for."""
    for x in logs:
        for entry in x.run.get("slowing") or ():
            if isinstance(entry, Mapping) and entry.get("line") == line:
                return str(entry.get("what", ""))
    return ""


def faults_of(logs: Iterable[LaunchLog]) -> tuple[str, ...]:
    """What is wrong or undefined on the device, each once."""
    return tuple(dict.fromkeys(text for x in logs for text in x.faults))


# ---- cases ----


def outputs_of(cases: Iterable[JudgedCase]) -> tuple[ComparedOutput, ...]:
    """Each output over all cases: the one that does not pass, or has the largest error."""
    by_name: dict[str, list[ComparedOutput]] = {}
    for x in (x for case in cases for x in case.outputs or ()):
        by_name.setdefault(x.name, []).append(x)
    return tuple(one_report(found) for found in by_name.values())


def correctness_of(cases: Sequence[JudgedCase], verdict: str) -> bool | None:
    """None where no values were judged."""
    if verdict in (CORRECT, SO_FAR):
        return True
    judged = verdict == WRONG or any(case.outputs is not None for case in cases)
    ran = not any(case.end or case.failed for case in cases)
    return False if judged or not ran else None


# ---- the verdict ----


def verdict_of(judged: Sequence[JudgedCase], product: Product, text: TextFacts) -> Verdict:
    """All cases of an answer as one verdict. text: what its text shows."""
    costs = [cost_of(c, product) for c in judged]
    cases = with_cheats(judged, costs, text)
    case, logs = worst(cases), launches_of(cases)
    times = [c.time_us for c in costs]
    time_us = None if None in times else sum(x for x in times if x is not None)
    verdict, timed = case.verdict, time_us is not None
    name = product.name
    return Verdict(
        verdict=verdict,
        message=case.message,
        compiled=verdict not in (NOT_COMPILED, NO_FIT),
        product=name,
        correctness=correctness_of(cases, verdict),
        metadata=metadata_of(cases, name),
        runtime=_ms(time_us),
        runtime_stats=stats(time_us, name),
        time_us=time_us,
        interval_us=interval(logs, sum(c.host_us for c in costs)) if timed else None,
        cycles=round(sum(x.cycles for x in logs)) if timed else None,
        **_beside(costs, time_us, name),
        **_bound(logs, time_us),
        outputs=outputs_of(cases),
        ub=ub_of(logs, [c.end for c in cases if c.end]),
        line=dear_line(logs),
        faults=faults_of(logs),
        cheats=cheats_of(cases),
        launches=launch_times(logs),
        host_ops=summed_host(costs),
        cases=tuple(map(_row, cases, costs)),
    )


def _ms(us: float | None) -> float:
    return -1.0 if us is None else us / 1e3


def _beside(costs: Sequence[CaseCost], time_us: float | None, product: str) -> dict[str, Any]:
    """Reference and floor, and KernelBench's keys of the first."""
    reference = summed_reference(costs)
    floors = [c.floor_us for c in costs]
    ref_us = None if reference is None else reference.time_us
    return {
        "reference": reference,
        "ref_runtime": _ms(ref_us),
        "ref_runtime_stats": stats(ref_us, product),
        "speedup": ref_us / time_us if ref_us and time_us else None,
        "floor_us": None if None in floors else sum(x for x in floors if x is not None),
    }


def _bound(logs: Sequence[LaunchLog], time_us: float | None) -> dict[str, Any]:
    bound = nearest_bound(logs) if time_us is not None else None
    return {"bound": bound, "distance": time_us / bound.time_us if bound and time_us else None}


def _row(case: JudgedCase, cost: CaseCost) -> CaseVerdict:
    return CaseVerdict(
        index=case.form.index,
        inputs=case.form.text,
        verdict=case.verdict,
        message=case.message,
        time_us=cost.time_us,
        reference_us=None if cost.reference is None else cost.reference.time_us,
        floor_us=cost.floor_us,
        outputs=case.outputs or (),
    )
