"""What a test hands to an assert, as one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ...simulator.errors import UsageError
from ...simulator.products.quantity import show
from ...simulator.record.run import Run
from ..facts.texts import clean

__tracebackhide__ = True
GIVEN = "give a Run, a result of an operator, or a list of them"
MOST_NAMED = 3


def one_run(given: object, asked: str, timed: bool = True) -> Run:
    """The run that `given` is or holds; of several one with all their launches, in order.

    Args:
        given: a `Run`, what has one as `.run` (`OpResult`, a row of a study), or an iterable of these.
        asked: the assert, for messages. timed: whether it is about times.

    Raises `UsageError` for anything else, for no runs at all, and for runs for values only where times are needed.
    """
    runs = list(_runs(given, asked))
    if not runs:
        raise UsageError(f"{asked}: there is no run in it; nothing was launched, or not yet")
    late = next((r for r in runs if timed and not r.launches), None)
    if late is not None:
        raise UsageError(f"{asked}: {clean(late.name, 60)} was run for values only; run it with time")
    return runs[0] if len(runs) == 1 else _together(runs)


def _runs(given: object, asked: str) -> Iterator[Run]:
    held = getattr(given, "run", None)
    if isinstance(given, Run):
        yield given
    elif isinstance(held, Run):
        yield held
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes | dict):
        for each in given:
            yield from _runs(each, asked)
    else:
        raise UsageError(f"{asked}: {show(given)} is no run; {GIVEN}")


def _together(runs: list[Run]) -> Run:
    """One record of all launches; a choice that differs between them has all its values."""
    names = list(dict.fromkeys(r.op or r.name for r in runs))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return replace(
        runs[0],
        name=", ".join(names[:MOST_NAMED]) + more,
        op=None,
        launches=tuple(x for r in runs for x in r.launches),
        inputs=_every([r.inputs for r in runs]),
        tiling=_every([r.tiling for r in runs]),
        value_warnings=tuple(w for r in runs for w in r.value_warnings),
    )


def _every(parts: list[dict[str, Any]]) -> dict[str, str]:
    names = dict.fromkeys(n for part in parts for n in part)
    return {n: ", ".join(dict.fromkeys(str(p[n]) for p in parts if n in p)) for n in names}
