"""What users write for `ascendtile explore`: spaces, budgets, tilings, changed figures."""

from __future__ import annotations

import math
import os
import shlex
from pathlib import Path
from typing import Any

import click

EARLIER = "explore.sqlite"


def default_store() -> str | None:
    """A file in the user's cache folder, one for each version of stores: releases do not meet in it. None without a home."""
    from ...tiling.results.store import VERSION

    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return None if cache.startswith("~") else str(Path(cache) / "ascendtile" / f"explore-{VERSION}.sqlite")


def tell_of_earlier(store: str | None) -> None:
    """Before `store` is made: a note where the file is that version 1 had there."""
    from ..terminal.console import note

    if store is None or os.path.exists(store):
        return
    earlier = Path(store).with_name(EARLIER)
    if os.path.isfile(earlier):
        note(f"{earlier} has results of an earlier release, which this one computes anew; to see them:")
        note(f"ascendtile report {shlex.quote(str(earlier))} -o earlier.html")


def read_space(given: dict[str, str]) -> dict[str, Any]:
    """ "block_m=64,128" is two values, "16..256" powers of two, "32..96+32" steps; mixtures are allowed."""
    return {
        name: [x for part in text.split(",") for x in _values(name, part)] for name, text in given.items()
    }


def _values(name: str, part: str) -> tuple[Any, ...]:
    from ...tiling import integers, powers_of_two

    if ".." not in part:
        return (int(part),) if part.lstrip("-").isdecimal() else (part,)
    low, _, rest = part.partition("..")
    high, _, step = rest.partition("+")
    if not (low.isdecimal() and high.isdecimal() and (step.isdecimal() or not step)):
        raise click.BadParameter(f"{name}: {part!r} is no range; write 16..256 or 32..96+32")
    return integers(int(low), int(high), int(step)) if step else powers_of_two(int(low), int(high))


def read_budget(text: str | None) -> tuple[int | None, float | None]:
    """ "500" is points, "60s" seconds, "2m" minutes."""
    if text is None:
        return None, None
    timed = text[-1:] in ("s", "m")
    try:
        value = float(text[:-1]) * (60 if text.endswith("m") else 1) if timed else int(text)
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        raise click.BadParameter(
            f"a budget is a number of tilings, or a time such as 60s or 5m, above 0, got {text!r}"
        )
    return (None, float(value)) if timed else (int(value), None)


def read_changes(given: dict[str, str]) -> dict[str, list[str]]:
    """ "buffers.ub=128KiB,256KiB" is two machines."""
    return {name: text.split(",") for name, text in given.items()}


def read_tiling(text: str) -> dict[str, str]:
    """ "block_m=64,group=1" as knobs; "auto" is what the operator chooses."""
    if text == "auto":
        return {}
    out = {}
    for part in text.replace(" ", ",").split(","):
        name, equals, value = (x.strip() for x in part.partition("="))
        if not (name and equals and value):
            raise click.BadParameter(f"{part!r} is not KNOB=VALUE; a tiling is block_m=64,group=1, or auto")
        out[name] = value
    return out
