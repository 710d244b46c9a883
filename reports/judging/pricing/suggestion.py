"""The next step for whoever wrote an answer, in one sentence, by its verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...facts import texts
from ..answer_log import LaunchLog
from ..cheats.catalogue import CATALOGUE
from ..verdict import CHEAT, DEFERRED, FAILED, NO_FIT, NOT_COMPILED, WRONG, Verdict
from .candidates import PossibleChange, candidates
from .confidence import DEFER

NEAR_BOUND = 0.9  # of the time
MOST_TEXT = 300
# How there is less of what binds, by the last part of its name.
LESS = {
    **dict.fromkeys(("MTE1", "MTE2"), "larger tiles that are used more often"),
    **dict.fromkeys(("HBM", "L2"), "fewer bytes: every input read once, nothing written that is read again"),
    "launch": "fewer launches and programs",
}
FULL = "--full"
NO_VALUES = "values are not known: "
FITS = re.compile(r"^(?:Tried|Of .*knobs).*fits?: .*$", re.MULTILINE)


def suggestion(verdict: Verdict, logs: Sequence[LaunchLog] = (), needed_bytes: int | None = None) -> str:
    """One sentence. logs: launches of one call of each case, dearest first; needed_bytes: of the task's inputs and outputs.

    Of a right answer: the change that saves most time, with the time that was simulated with it where it could be tried.
    """
    said = {
        CHEAT: _honest,
        NOT_COMPILED: _mend,
        NO_FIT: _smaller,
        FAILED: _mend,
        WRONG: _right,
    }
    if verdict.verdict == DEFERRED:
        return _sentence(_board(verdict).rstrip(".") + _meanwhile(verdict, logs, needed_bytes))
    if verdict.verdict in said:
        return _sentence(said[verdict.verdict](verdict))
    return _sentence(_faster(verdict, logs, needed_bytes))


def _sentence(text: str) -> str:
    """On one line, with a full stop."""
    flat = texts.clean(text.strip(), None)
    return flat if flat.endswith((".", "?")) else f"{flat}."


def _honest(verdict: Verdict) -> str:
    cheat = verdict.cheats[0] if verdict.cheats else None
    if cheat is None or cheat.name not in CATALOGUE:
        return "Compute the outputs in a kernel, from the inputs of the call."
    place = f"Line {cheat.line}: " if cheat.line else "The answer: "
    way = CATALOGUE[cheat.name].instead
    return f"{place}{cheat.message.rstrip('.')}; {way[:1].lower()}{way[1:]}"


def _mend(verdict: Verdict) -> str:
    text = _first_line(_error(verdict.metadata) or verdict.message)
    return f"Mend what ends the answer before it is judged: {texts.clean(text, MOST_TEXT)}"


def _error(metadata: Mapping[str, object]) -> str:
    return str(metadata.get("compilation_error") or metadata.get("runtime_error") or "")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _smaller(verdict: Verdict) -> str:
    text = _error(verdict.metadata)
    fits = FITS.search(text)
    if fits:
        return f"Take smaller tiles: {_lowered(fits[0])}"
    need = verdict.ub
    sizes = f": {need.bits:,} bits are needed, {need.available_bits:,} are there" if need else ""
    return f"Take smaller tiles, or fewer of them at once{sizes}"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _right(verdict: Verdict) -> str:
    bad = next((x for x in verdict.outputs if not x.passed), None)
    return f"Mend the values first: {(bad.message if bad else '') or verdict.message}"


def _board(verdict: Verdict) -> str:
    if FULL in verdict.message:  # only the values of a sample are not to be had
        return f"Judge all values ({FULL}, of the tool full: true): {texts.clean(verdict.message, MOST_TEXT)}"
    if verdict.message.startswith(NO_VALUES):
        return (
            f"There is nothing to compare with, look at the task: {texts.clean(verdict.message, MOST_TEXT)}"
        )
    of_model = verdict.confidence == DEFER and verdict.time_us is not None
    why = (verdict.confidence_reason if of_model else "") or verdict.message or verdict.confidence_reason
    return f"Ask a board for this one, the model does not know: {texts.clean(why, MOST_TEXT)}"


def _meanwhile(verdict: Verdict, logs: Sequence[LaunchLog], needed_bytes: int | None) -> str:
    """What to change where the time is known, and the values alone are not."""
    if verdict.confidence == DEFER:
        return ""
    best = _candidates(verdict, logs, needed_bytes)
    return f"; to save time: {_lowered(best[0].text)}" if best else ""


def _candidates(
    verdict: Verdict, logs: Sequence[LaunchLog], needed_bytes: int | None
) -> list[PossibleChange]:
    if verdict.time_us is None:
        return []
    return candidates(logs, verdict.host_ops, verdict.time_us, needed_bytes, max(1, len(verdict.cases)))


def _faster(verdict: Verdict, logs: Sequence[LaunchLog], needed_bytes: int | None) -> str:
    if verdict.time_us is None or not logs:
        return "There is no time to make shorter."
    if verdict.faults:
        return f"Mend first what is wrong on the device: {texts.clean(verdict.faults[0], MOST_TEXT)}"
    best = _candidates(verdict, logs, needed_bytes)
    if best:
        return best[0].text
    tried, grid = logs[0].run.get("lifted_us"), _untried_grid(logs[0])
    return f"Nothing was tried: {grid}" if grid and not tried else _at_bound(verdict, bool(tried))


def _untried_grid(log: LaunchLog) -> str:
    """Why no other grid was tried; "" where one was, or nobody says."""
    untried = log.run.get("untried")
    return str(untried.get("grid", "")) if isinstance(untried, Mapping) else ""


def _at_bound(verdict: Verdict, tried: bool) -> str:
    """tried: whether changes of one knob were timed."""
    bound, said = verdict.bound, "No change of one knob that was timed is faster" if tried else ""
    if bound is None:
        return said or "There is nothing to say of a faster way"
    name = texts.MEANINGS.get(bound.name.rpartition(".")[2], bound.name)
    allows = f"{name} ({bound.name}) allows {texts.micros(bound.time_us)} us, {texts.percent(bound.share)} of the time"
    if said:
        allows = f"{said}; {allows}"
    if bound.share < NEAR_BOUND:
        return (
            f"{allows}: let loads, arithmetic and stores of different tiles overlap, or do less of what binds"
        )
    part = bound.name.rpartition(".")[2]
    return f"{allows}, so only less of it is faster, with {LESS.get(part, 'another algorithm')}"
