"""What the options of a device may be, so that a wrong one is refused where it is given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from .errors import UsageError
from .l2.state import RULE, is_l2

ACCUMULATE = ("exact", "blas")
HF32_ROUNDS = ("RINT", "ROUND", "RNZ")
MASKED = ("zero", "poison")
OUT_OF_BOUNDS = ("error", "warn")
MOST_COPIES = 16


def _integer(x: Any, low: int, high: float = math.inf) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and low <= x <= high


def _base_tile(x: Any) -> bool:
    return x is None or (isinstance(x, tuple | list) and len(x) == 3 and all(_integer(n, 1) for n in x))


RELEASES = ("9.0", "8.5")  # of triton-ascend, the usual one first
COPIED = ("UB", "L1", "L0C")  # buffers in which tiles may have several copies
# Of these, those that the vendor's compiler takes for it in programs that have products and Vector work.
MIXED_COPIES = {"only-cube": ("L1", "L0C"), "only-vector": ("UB",), "no-limit": COPIED}

# Option -> (whether a value is legal, the rule in words).
RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "compiler": (lambda x: x in (None, "triton-ascend", "ascendc"), "'triton-ascend', 'ascendc' or None"),
    "compiler_version": (lambda x: x in RELEASES, " or ".join(map(repr, RELEASES))),
    "multibuffer": (
        lambda x: _integer(x, 1, MOST_COPIES),
        f"a number of copies from 1 to {MOST_COPIES}",
    ),
    "workspace_copies": (
        lambda x: x is None or _integer(x, 1, MOST_COPIES),
        f"a number of copies from 1 to {MOST_COPIES}",
    ),
    "tile_mix_vector_loop": (lambda x: _integer(x, 1), "a number of pieces, an integer from 1"),
    "tile_mix_cube_loop": (lambda x: _integer(x, 1), "a number of pieces, an integer from 1"),
    "bind_sub_block": (lambda x: isinstance(x, bool), "True or False"),
    "multibuffer_l0c": (lambda x: x is None or isinstance(x, bool), "True, False or None"),
    "mixed_copies": (
        lambda x: isinstance(x, str) and x in MIXED_COPIES,
        " or ".join(map(repr, MIXED_COPIES)),
    ),
    "single_in": (
        lambda x: isinstance(x, tuple) and set(x) <= set(COPIED),
        f"a tuple of names out of {', '.join(COPIED)}",
    ),
    "local_copies_only": (lambda x: isinstance(x, bool), "True or False"),
    "explain": (lambda x: isinstance(x, bool), "True or False"),
    "details": (lambda x: isinstance(x, bool), "True or False"),
    "cold_code": (lambda x: isinstance(x, bool), "True or False"),
    "banks_apart": (lambda x: isinstance(x, bool), "True or False"),
    "unit_flag": (lambda x: isinstance(x, bool), "True or False"),
    "timeline": (lambda x: _integer(x, 0), "a number of instructions from 0"),
    "step_limit": (lambda x: _integer(x, 1), "a number of iterations from 1"),
    "l0_tile": (_base_tile, "None, or baseM, baseN and baseK: three integers from 1, such as (128, 256, 64)"),
    "l2": (is_l2, RULE),
    "accumulate": (lambda x: x in ACCUMULATE, f"one of {', '.join(ACCUMULATE)}"),
    "hf32_round": (lambda x: x in HF32_ROUNDS, f"one of {', '.join(HF32_ROUNDS)}"),
    "atomic_seed": (
        lambda x: x is None or _integer(x, 0),
        "an integer from 0, or None for ascending order",
    ),
    "check": (lambda x: isinstance(x, bool), "True or False"),
    "masked": (lambda x: isinstance(x, str) and x in MASKED, " or ".join(map(repr, MASKED))),
    "errors": (lambda x: isinstance(x, bool) or x == "lines", "False, True or 'lines'"),
    "reference": (
        lambda x: x is None or callable(x) or isinstance(x, Mapping),
        "a function, a dict of arrays by name, or None",
    ),
    "out_of_bounds": (
        lambda x: isinstance(x, str) and x in OUT_OF_BOUNDS,
        " or ".join(map(repr, OUT_OF_BOUNDS)),
    ),
}


def check_options(device: Any) -> None:
    """Raise `UsageError` for the first option of a `Device` that breaks its rule."""
    for name in RULES:
        check_option(name, getattr(device, name))


def check_option(option: str, given: Any, name: str = "") -> None:
    """Raise `UsageError` if a value breaks the rule of an option. name: as the user wrote it, if not as the option."""
    legal, rule = RULES[option]
    if not legal(given):
        raise UsageError(f"{name or option} must be {rule}, got {given!r}")
