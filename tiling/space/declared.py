"""What a user's kernel declares to be tried, beside its source: `tunable`, or the tuners of Triton that map onto the same.

    @tunable({"BLOCK": powers_of_two(256, 16384), "multibuffer": (1, 2)}, lambda BLOCK, **_: BLOCK <= 8192)
    @sim.jit
    def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr): ...

`triton.autotune` is a space of which its candidates are the only legal points; `triton.heuristics` are compile-time values
that follow from the others and so are no axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...simulator.errors import UsageError
from ...simulator.jit_function import JitFunction
from .space import Point, Rule, Space

ABSENT = None  # the value of an axis that a candidate says nothing of
# Fields of a candidate that no machine here has; a candidate has them even if nobody set them.
WITHOUT_EFFECT = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override")
NOT_LISTED, PRUNED = "not among the candidates", "pruned by the tuner's own prune_configs_by"
HOOKS = "pre_hook of candidates is not called: a sweep only times"
Derived = tuple[Mapping[str, Callable[[dict[str, Any]], Any]], ...]


@dataclass(frozen=True)
class Declared:
    """A kernel without the tuners around it.

    space: what is declared, None if nothing is. grid: its grid, if that is declared, too. derived: name -> function of all
    arguments by name, in the order in which they are computed. notes: messages for the user.
    """

    kernel: JitFunction
    space: Space | None = None
    grid: Any = None
    derived: Derived = ()
    notes: tuple[str, ...] = ()


def tunable(
    space: Mapping[str, Sequence[Any]] | Space,
    *constraints: Callable[..., Any] | Rule,
    grid: Any = None,
) -> Callable[[Any], Any]:
    """Declare a kernel's space beside it, so that `explore(kernel, args)` needs no more.

    space: compile-time parameter, "multibuffer" or "cube_math_type" -> values. constraints: functions of a point's values
    that say whether it is legal. grid: a tuple, or a function of all arguments by name.
    """
    made = as_space(space)
    made = Space(made.axes, (*made.rules, *constraints))

    def declare(kernel: Any) -> Any:
        kernel.tilings = (made, grid)
        return kernel

    return declare


def as_space(space: Mapping[str, Any] | Space) -> Space:
    """Axes as a space; a value alone stands for an axis of one."""
    if isinstance(space, Space):
        return space
    return Space({n: several(v) for n, v in space.items()})


def several(values: Any) -> tuple[Any, ...]:
    """Values of an axis: any collection but a text, or one value."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        return (values,)
    return tuple(values)


def declared(what: Any, args: Mapping[str, Any]) -> Declared:
    """The kernel inside of any number of tuners, and what they declare for these arguments. Raises `UsageError`."""
    found, space, grid = what, None, None
    derived: list[Mapping[str, Callable[[dict[str, Any]], Any]]] = []
    notes: list[str] = []
    while True:
        own = getattr(found, "tilings", None)
        if own is not None:
            space, grid = own
        if isinstance(found, JitFunction):
            return Declared(found, space, grid, tuple(derived), tuple(notes))
        if hasattr(found, "configs"):
            space = candidates(found, args)
            notes += [HOOKS] * any(c.pre_hook is not None for c in found.configs)
            notes += _same_here(found.configs)
        elif isinstance(getattr(found, "values", None), Mapping):
            derived.append(found.values)
        found = getattr(found, "fn", None)
        if found is None:
            raise UsageError(f"explore takes the name of an operator or a @sim.jit kernel, got {what!r}")


def candidates(tuner: Any, args: Mapping[str, Any]) -> Space:
    """The candidates of `triton.autotune`, without those that it would prune for these arguments."""
    before, tuner.nargs = tuner.nargs, dict(args)
    try:
        kept = tuner.prune_configs({})
    finally:
        tuner.nargs = before
    listed = space_of([_point(c) for c in tuner.configs])
    alive = [_point(c) for c in kept]
    if all(p in alive for p in map(_point, tuner.configs)):
        return listed
    return Space(listed.axes, (*listed.rules, _listed(PRUNED, list(listed.axes), alive)))


def _same_here(configs: Sequence[Any]) -> list[str]:
    different = len({repr(sorted(_point(c).items(), key=str)) for c in configs})
    if different == len(configs):
        return []
    return [
        f"the {len(configs)} candidates are {different} tilings here: the others differ in what no Ascend core has "
        f"({', '.join(WITHOUT_EFFECT[:3])} ...)"
    ]


def _point(config: Any) -> Point:
    """What a candidate sets, launch keywords without effect left out."""
    return {n: x for n, x in config.all_kwargs().items() if n in config.kwargs or n not in WITHOUT_EFFECT}


def space_of(points: list[Point]) -> Space:
    """A space whose legal points are these. A value that a point does not set is left to the kernel's default."""
    names = list(dict.fromkeys(n for p in points for n in p))
    axes = {n: tuple(dict.fromkeys(p.get(n, ABSENT) for p in points)) for n in names}
    return Space(axes, [_listed(NOT_LISTED, names, points)])


def _listed(rule: str, names: list[str], points: list[Point]) -> Rule:
    alive = {tuple(p.get(n, ABSENT) for n in names) for p in points}
    return Rule(rule, lambda **x: tuple(x[n] for n in names) in alive)


def with_axes(found: Declared, space: Mapping[str, Any] | Space | None) -> Declared:
    """The declared space with axes that were asked for besides. Candidates cannot be given other values."""
    if not space:
        return found
    asked, own = as_space(space), found.space or Space({})
    twice = [n for n in asked.axes if n in own.axes]
    if twice and any(r.name == NOT_LISTED for r in own.rules):
        name = found.kernel.name
        raise UsageError(
            f"explore({name}): the candidates of triton.autotune already give {twice[0]!r}; give other parameters, or "
            f"explore {name}.fn, the kernel without its candidates"
        )
    return replace(found, space=Space({**own.axes, **asked.axes}, (*own.rules, *asked.rules)))
