"""Which modes and data types a precision study has rows for, and what it asks of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from ...simulator.device import CUBE_MATH_TYPES, MATH_MODES
from ...simulator.errors import UsageError
from ...simulator.precision.block_formats import BLOCK_FORMATS
from ...simulator.precision.need import Need, finest
from ...simulator.precision.splits import SPLITS
from ..operator.formats import other_formats
from ..operator.messages import listed, near
from ..operator.operator import Operator
from ..operator.parameter import as_mapping
from ..operator.tensors import Knobs
from ..running.run_op import without_cube
from .bench import KEEP

SPLIT = "splits"  # among the modes asked for: every split of FP32 operands, which "all" leaves out
MIXED = "mixed"  # among the data types asked for: every mixture of them
OTHERS = "formats"  # and every number format of the catalogue that no element type is


def rows_wanted(
    op: Operator, modes: str | Iterable[str], dtypes: str | Iterable[str], tiling: Knobs
) -> list[tuple[str, str]]:
    """(mode, data type) pairs, float32 first: it is what the others are compared with."""
    names = _modes(modes, has_modes(op, tiling))
    others = {OTHERS: (*other_formats(), *BLOCK_FORMATS)} if op.formats else {}
    wanted = _names("dtype", _specs(dtypes), {"all": op.dtypes, **others})
    each = [op.mixtures() if d == MIXED else (op.mixture(d),) for d in wanted]
    types = [d for group in each for d in group]
    if not types:
        raise UsageError(f"{op.name} takes no mixtures of data types; its types are {listed(op.dtypes)}")
    ordered = sorted(dict.fromkeys(types), key=lambda d: d != "float32")
    return [(mode, dtype) for dtype in ordered for mode in (names if dtype in known(op) else [KEEP])]


def _specs(given: Any) -> Any:
    """Names apart at their commas, but for those inside of the description of a format: "hif8,e4m3:bias=11,nan=zero"."""
    if not isinstance(given, str):
        return given
    out: list[str] = []
    for part in given.split(","):
        if out and ":" in out[-1] and "=" in part and ":" not in part:
            out[-1] += f",{part.strip()}"
        else:
            out.append(part)
    return out


def known(op: Operator) -> tuple[str, ...]:
    """Element types of an operator and mixtures of them: what a cubeMathType is for."""
    return (*op.dtypes, *op.mixtures())


def _names(what: str, given: str | Iterable[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Names, words for a group of them in place."""
    every = groups["all"]
    if not isinstance(given, Iterable):
        raise UsageError(f'{what} must be "all" or names, got {given!r}')
    names = [str(n).strip() for n in (given.split(",") if isinstance(given, str) else given)]
    if not any(names):
        raise UsageError(f"no {what} given; known are {listed(every)}")
    if "all" in names:  # first, whatever comes before it
        names = ["all", *(n for n in names if n != "all")]
    return list(dict.fromkeys(x for n in names for x in groups.get(n, (n,))))


def _modes(given: str | Iterable[str], meant: bool = True) -> list[str]:
    """Modes that were asked for. meant: whether they mean anything; where not, KEEP_DTYPE stands for all."""
    names = [
        _mode(n) for n in _names("cube_math_type", given, {"all": CUBE_MATH_TYPES, SPLIT: tuple(SPLITS)})
    ]
    return names if meant else [KEEP]


def _mode(name: str) -> str:
    """A cubeMathType or a split by name, in any case, or by the vendor's number."""
    if name.isdecimal() and int(name) < len(CUBE_MATH_TYPES):
        return CUBE_MATH_TYPES[int(name)]
    if name.upper() not in MATH_MODES:
        raise UsageError(f"unknown cube_math_type {name!r}{near(name, (*MATH_MODES, SPLIT))}")
    return name.upper()


def has_modes(op: Operator, tiling: Knobs) -> bool:
    """Whether a cubeMathType means anything with these knobs."""
    return op.resolve is not None or op.used_cube(tiling) is not None


def idle_modes(
    op: Operator, modes: str | Iterable[str], tiling: Knobs, plan: Iterable[tuple[str, str]]
) -> tuple[str, ...]:
    """Words about modes that were asked for where they mean nothing. plan: the rows, of which none has such a mode."""
    used = {mode for mode, _ in plan}
    idle = [m for m in _modes(modes) if m not in (KEEP, *used)]
    if modes == "all" or not idle:
        return ()
    if not has_modes(op, tiling):
        return (without_cube(op, idle),)
    return (f"no row has {listed(idle)}: operands in a number format are multiplied as they are ({KEEP})",)


def read_need(given: Mapping[str, Any] | Need, plan: Iterable[tuple[str, str]]) -> Need:
    """A need; a rule without a format takes the thresholds of the finest type among the rows."""
    if not isinstance(given, Need):
        known = [f.name for f in fields(Need)]
        for n in as_mapping("need", given, "name to value"):
            if n not in known:
                raise UsageError(f"a need has no {n!r}{near(n, known)}")
        given = Need(**given)
    if given.rule is None or given.fmt is not None:
        return given
    return replace(given, fmt=finest([d for _, dtype in plan for d in dtype.split("+")]))
