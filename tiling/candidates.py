"""Candidates of `triton.autotune` as a space: the same kernel, and its configs as the only legal points."""

from __future__ import annotations

from typing import Any

from .evaluate import ABSENT
from .space import Point, Rule, Space

# Fields of a config that no machine here has; a config has them even if nobody set them.
WITHOUT_EFFECT = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override")


def is_tuner(what: Any) -> bool:
    """Whether it is a kernel with candidates, as `triton.autotune` makes it."""
    return hasattr(what, "configs") and hasattr(what, "base_fn")


def points_of(configs: Any) -> list[Point]:
    """What each candidate sets, launch keywords without effect left out."""
    return [
        {n: x for n, x in c.all_kwargs().items() if n in c.kwargs or n not in WITHOUT_EFFECT} for c in configs
    ]


def space_of(points: list[Point]) -> Space:
    """A space whose legal points are these. A value that a point does not set is left to the kernel's default."""
    names = dict.fromkeys(n for p in points for n in p)
    axes = {n: tuple(dict.fromkeys(p.get(n, ABSENT) for p in points)) for n in names}
    listed = {tuple(p.get(n, ABSENT) for n in names) for p in points}
    return Space(axes, [Rule("not among the candidates", lambda **x: tuple(x[n] for n in names) in listed)])
