"""What a run found in L2 and what it left there, in words."""

from __future__ import annotations

from typing import Any

from ...simulator.l2.state import AS_LEFT, COLD, LOOP, WARM
from ...simulator.record.run import Run
from .texts import clean, kib

MIB = 1 << 20
STARTS = {
    LOOP: "as the same run left it (loop)",
    COLD: "empty at the start (cold)",
    WARM: "the arguments are there at the start (warm)",
}


def l2_text(run: Run) -> str:
    """ "as the same run left it (loop); at the end 16 MiB are changed, which the next has to write"; "" of old records."""
    left = run.l2_left_bytes
    if left is None:
        return ""
    size = f"{left / MIB:.4g} MiB" if left >= MIB else f"{kib(left)} KiB"
    end = (
        f"at the end {size} are changed, which the next has to write"
        if left
        else "nothing to write at the end"
    )
    return f"{_start(run.options.get('l2'))}; {end}"


def _start(told: Any) -> str:
    text = clean(str(told), 200)
    if text.endswith(AS_LEFT):
        named = text.removesuffix(AS_LEFT).strip()
        return "as the launches before left it" + (f", but {named}" if named not in STARTS else "")
    every = [x.removeprefix("*=") for x in text.split(",") if x.startswith("*=")]
    named = ",".join(x for x in text.split(",") if not x.startswith("*="))
    if every and not named:
        return STARTS.get(every[0], text)
    others = "as the same run left them" if every in ([], [LOOP]) else every[0]
    return STARTS.get(text, f"{named}, the others {others}")


def l2_option(run: Run) -> str | None:
    """As `--l2` takes it; None for the usual one."""
    text = str(run.options.get("l2", LOOP)).removesuffix(AS_LEFT).strip()
    return None if text == LOOP else text
