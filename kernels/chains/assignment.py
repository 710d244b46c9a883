"""What is chosen of a chain: the format of every tensor, and the cubeMathType of every step that multiplies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...simulator.device import CUBE_MATH_TYPES
from ...simulator.errors import UsageError
from ..operator.messages import listed
from ..operator.notes import mode_name
from ..operator.parameter import as_mapping
from .chain import EVERY_PRODUCT, EVERY_TENSOR, Chain

USUAL_FORMAT, USUAL_MODE = "fp32", CUBE_MATH_TYPES[0]


@dataclass(frozen=True)
class Assignment:
    """formats: tensor -> format, of every tensor. modes: step -> cubeMathType, of every step that multiplies."""

    formats: Mapping[str, str]
    modes: Mapping[str, str]


def assigned(chain: Chain, formats: Any = None, modes: Any = None) -> Assignment:
    """The assignment of what is given by name of a tensor, a step or a group; a name counts more than a group, a group more
    than "all" and "products". Raises `UsageError` for names and modes that there are not."""
    steps = {s.name: s for s in chain.order}
    found = {
        "formats": _spread(chain, "formats", as_mapping("formats", formats, "tensor to format")),
        "modes": _spread(chain, "modes", as_mapping("modes", modes, "step to cubeMathType")),
    }
    for n in found["formats"]:
        if n in steps:
            raise UsageError(
                f"the chain {chain.name}: {n!r} is a step, and formats are of tensors; see modes"
            )
    for n in found["modes"]:
        if n not in chain.products:
            what = "step that multiplies nothing" if n in steps else "tensor"
            raise UsageError(
                f"the chain {chain.name}: {n!r} is a {what}; a cubeMathType is of {listed(chain.products)}"
            )
    named = {n: mode_name(steps[n].operator, x) for n, x in found["modes"].items()}
    return Assignment(
        {n: str(found["formats"].get(n, USUAL_FORMAT)) for n in chain.tensors},
        {n: named.get(n, USUAL_MODE) for n in chain.products},
    )


def in_short(chain: Chain, assignment: Assignment) -> tuple[dict[str, str], dict[str, str]]:
    """Formats and modes by as few names as `assigned` needs to give the same, groups among them."""
    return (
        _short(chain, EVERY_TENSOR, assignment.formats, USUAL_FORMAT),
        _short(chain, EVERY_PRODUCT, assignment.modes, USUAL_MODE),
    )


def _short(chain: Chain, every: str, values: Mapping[str, str], usual: str) -> dict[str, str]:
    """What most have under `every`, then groups that agree, then single names."""
    most = max(dict.fromkeys((usual, *values.values())), key=list(values.values()).count)
    left = {n: x for n, x in values.items() if x != most}
    out = {} if most == usual else {every: most}
    for name, members in chain.groups.items():
        if left.keys() >= set(members) and len({left[n] for n in members}) == 1:
            out[name] = left[members[0]]
            left = {n: x for n, x in left.items() if n not in members}
    return out | left


def _spread(chain: Chain, what: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Values by single names: those of the widest groups first, so that narrower ones take their place."""
    ranks = {EVERY_TENSOR: 0, EVERY_PRODUCT: 0, **dict.fromkeys(chain.groups, 1)}
    out: dict[str, Any] = {}
    for rank in (0, 1, 2):
        level: dict[str, Any] = {}
        for n in (n for n in given if ranks.get(n, 2) == rank):
            for member in chain.members(n):
                if level.setdefault(member, given[n]) != given[n]:
                    raise UsageError(f"the chain {chain.name}: two groups give {member!r} different {what}")
        out |= level
    return out
