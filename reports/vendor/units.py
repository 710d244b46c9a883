"""Who did what on which core of a launch: one `Unit` for each Cube, Vector or AI core that worked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...simulator.errors import UsageError
from ...simulator.record.run import Launch
from ..facts.texts import clean

# Pipe of the model -> the vendor's name, as in aic_cube_ratio, where that is not the same in small letters.
PIPES = {"M": "cube", "V": "vec", "S": "scalar", "FIXP": "fixpipe"}
# Sort of bank conflict -> the vendor's name, as in aiv_vec_bankgroup_cflt_ratio.
CONFLICTS = {"bank group": "bankgroup", "bank": "bank"}
KINDS = {
    "AIC": ("aic", "cube0"),
    "AIV": ("aiv", "vector0"),
    "AIV1": ("aiv", "vector1"),
    "AICORE": ("aic", "core"),
}


@dataclass(frozen=True)
class Unit:
    """block: number of the core. side: "aic" or "aiv"; a core that has both sorts of unit is "aic", as the vendor has it.
    part: the vendor's sub_block_id. cycles, us: from the launch's first cycle to the end of the core's last program.
    busy, waits: vendor's name of a pipe -> share of these cycles.
    conflicts: vendor's name of a sort of bank conflict -> likewise; empty where the record does not tell.
    moved: path ("GM to UB") -> bytes; None where the record does not tell."""

    block: int
    side: str
    part: str
    cycles: float
    us: float
    busy: dict[str, float]
    waits: dict[str, float]
    conflicts: dict[str, float]
    moved: dict[str, float] | None


def units(launch: Launch) -> list[Unit]:
    """The cores that worked, in the order of their numbers.

    Raises:
        UsageError: the record does not tell cores apart: it is an old one, or was run without a timeline.
    """
    if not launch.core_cycles or not all(p.core_busy and p.core_waits for p in launch.pipes.values()):
        raise UsageError(
            f"the record of {clean(launch.kernel, 60)} does not tell cores apart; run it again with this version "
            "and with a timeline (device option timeline, 20000 if not given)"
        )
    names = list(dict.fromkeys(name.partition(".")[0] for name in launch.pipes))
    working = [k for k, cycles in enumerate(launch.core_cycles) if cycles > 0]
    return [_unit(launch, core, name) for core in working for name in names]


def us_per_cycle(launch: Launch) -> float:
    """Of the AI Core clock."""
    found = launch.us_per_cycle
    if not (math.isfinite(found) and found > 0):
        raise UsageError(f"{clean(launch.kernel, 60)}: its times are no numbers, this record is damaged")
    return found


def _unit(launch: Launch, core: int, name: str) -> Unit:
    side, part = KINDS.get(name, (name.lower(), name.lower()))
    cycles = launch.core_cycles[core]
    own = {n.partition(".")[2]: p for n, p in launch.pipes.items() if n.partition(".")[0] == name}
    try:
        busy = {PIPES.get(n, n.lower()): p.core_busy[core] / cycles for n, p in own.items()}
        waits = {PIPES.get(n, n.lower()): p.core_waits[core] / cycles for n, p in own.items()}
        lost = own["V"].core_conflicts if "V" in own else {}
        met = {named: lost[n][core] / cycles for n, named in CONFLICTS.items() if n in lost}
        apart = ((n.partition("."), x) for n, x in launch.core_bytes.items())
        moved = {path: x[core] for (unit, _, path), x in apart if unit == name}
    except IndexError:
        raise UsageError(
            f"{clean(launch.kernel, 60)}: its pipes know fewer cores than it has, this record is damaged"
        ) from None
    us = cycles * us_per_cycle(launch)
    return Unit(core, side, part, cycles, us, busy, waits, met, moved if launch.core_bytes else None)
