"""What the vendor's compiler costs beside code that is written by hand: two runs of one kernel, one of each."""

from __future__ import annotations

from ...simulator.device import ASCENDC, TRITON_ASCEND
from ...simulator.record.run import ASSUMED_FIGURES, Run
from . import facts, texts
from .authors import compiler
from .differences import FigurePair, RunDifference

MOST_CAUSES = 3
ENDS = tuple(texts.STALLS[reason] for reason in ("tail", "dispatch", "idle"))  # waits that follow from others


def compiler_cost(d: RunDifference) -> list[str]:
    """Sentences about two runs of one kernel that differ in who made the code; empty for all others."""
    compiled, by_hand = d.first, d.second
    if compiler(compiled) == ASCENDC:
        compiled, by_hand = by_hand, compiled
    one_kernel = compiled.name == by_hand.name and compiled.inputs == by_hand.inputs
    authors = compiler(compiled).startswith(TRITON_ASCEND) and compiler(by_hand) == ASCENDC
    if not (one_kernel and authors and facts.timed(compiled) and facts.timed(by_hand)):
        return []
    sign = 1 if compiled is d.second else -1
    more = compiled.time_us - by_hand.time_us
    others = [n for n, *_ in d.settings if n != "compiler"]
    beside = (
        [f"Other choices differ, too: {', '.join(texts.clean(n, 40) for n in others[:3])}."] if others else []
    )
    return [_verdict(compiled, by_hand, more), *_causes(d, sign, more), *_notes(compiled, by_hand), *beside]


def _verdict(compiled: Run, by_hand: Run, more: float) -> str:
    made, part = compiler(compiled), texts.percent(facts.share(abs(more), by_hand.time_us))
    if not more:
        return f"{made} makes it as fast as ascendc: writing it by hand would gain nothing."
    if more < 0:
        less = f"{texts.micros(-more)} us ({part}) less"
        return f"What {made} makes takes {less} than what is written by hand: that would gain nothing."
    gain = texts.percent(facts.share(more, compiled.time_us))
    return f"{made} costs {texts.micros(more)} us ({part} of ascendc's time); writing the kernel by hand would gain {gain}."


def _causes(d: RunDifference, sign: int, more: float) -> list[str]:
    """Busy pipes and waits that moved most in the direction of the time, and buffers whose peaks differ."""
    caused = (p for p in (*d.busy, *d.waits) if not p.name.endswith(ENDS))
    moved = [p for p in caused if p.change * sign * more > 0]
    top = sorted(moved, key=lambda p: -abs(p.change))[:MOST_CAUSES]
    named = [f"{texts.clean(p.name, 80)} {texts.signed_micros(sign * p.change)} us" for p in top]
    peaks = [_peak(p, sign) for p in d.buffers if p.change]
    out = [f"Where it goes: {'; '.join(named)}."] if named else []
    return [*out, *([f"At the peak, compiled against by hand: {', '.join(peaks)}."] if peaks else [])]


def _peak(p: FigurePair, sign: int) -> str:
    a, b = (p.second, p.first) if sign > 0 else (p.first, p.second)
    return f"{texts.clean(p.name, 12)} {texts.kib(a or 0.0)} against {texts.kib(b or 0.0)} KiB"


def _notes(compiled: Run, by_hand: Run) -> list[str]:
    """What only the compiler had to do."""
    own = [n for n in compiled.notes if n not in by_hand.notes and not n.startswith(ASSUMED_FIGURES)]
    return [f"{texts.clean(n, 160)}." for n in own[:MOST_CAUSES]]
