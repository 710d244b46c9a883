"""Candidates for a tuner that lists none, as Triton-Ascend makes them: sizes of the axes that the kernel divides.

Which parameter divides which axis is read from the kernel's source (or said in `hints`): it is part of what a mask compares
with the axis' length, or the step of a loop up to it. A parameter that `tl.program_id` is multiplied by splits the axis over
programs, any other is the size of a tile. Triton-Ascend, docs/en/examples/06_autotune_example.md, has the same rules; the
sizes are our own: from a core's share downwards by halves.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..device import current_device
from ..errors import UsageError
from ..interpreter.tensors import as_array
from .config import Config
from .kernel import JITFunction

AXES = ("x", "y", "z", "w", "v", "t")
PROGRAM = "program_id"
WHOLE_ROW = 16  # elements; of halves 32 bytes
MOST = 64


class TuningAxis(NamedTuple):
    """An axis of the data: its length, and the parameters that split it over programs and into tiles ("": none)."""

    length: int
    split: str
    tile: str


def candidates(
    kernel: JITFunction,
    key: Any,
    hints: Mapping[str, Any],
    given: dict[str, Any],
    missing: list[str],
    grid: Any,
) -> list[Config]:
    """Values for the missing parameters: up to 64 sets of them, none with a tile that is larger than half of UB."""
    lengths = {n: given[n] for n in _key_of_axes(key).values() if isinstance(given.get(n), int)}
    axes = _axes(kernel, key, hints, lengths, missing)
    _check_all_found(kernel, key, axes, missing)
    widths = [a.dtype.itemsize for x in given.values() if (a := as_array("argument", x)) is not None]
    product = current_device().product
    most = product.ub_bytes // max(widths, default=4) // 2
    cores = product.vector_cores if sum(bool(a.split) for a in axes) == 1 else 1
    programs = 0 if callable(grid) else math.prod(grid) if isinstance(grid, tuple | list) else int(grid)
    every = itertools.product(*(_values(a, cores, programs, most) for a in axes))
    sets = [{n: size for axis in values for n, size in axis.items()} for values in every]
    fitting = [x for x in sets if math.prod(x[a.tile or a.split] for a in axes) <= most]
    return [Config(x) for x in fitting[:MOST]]


def _key_of_axes(key: Any) -> dict[str, str]:
    """Name of an axis -> the argument that is its length."""
    return dict(key) if isinstance(key, Mapping) else dict(zip(AXES, key or (), strict=False))


def _check_all_found(kernel: JITFunction, key: Any, axes: Sequence[TuningAxis], missing: list[str]) -> None:
    lacking = sorted(set(missing) - {name for a in axes for name in (a.split, a.tile)})
    if lacking:
        names = ", ".join(_key_of_axes(key).values()) or "none"
        raise UsageError(
            f"autotune of {kernel.name} lists no candidates, and {', '.join(lacking)} is missing and cannot be made from "
            "the kernel: a size is found where it is part of what a mask compares with an argument of `key` "
            f"({names}). List some, configs=[triton.Config({{{lacking[0]!r}: 1024}})], or give it at the launch"
        )


# -- the axes of a kernel ----------------------------------------------------------------------------------------------


def _axes(
    kernel: JITFunction, key: Any, hints: Mapping[str, Any], lengths: dict[str, int], missing: list[str]
) -> list[TuningAxis]:
    """Of each length that a missing parameter divides, by the hints or else by the source."""
    source = _Source(kernel.source.tree)
    named = _key_of_axes(key)
    split = {named[a]: p for a, p in (hints.get("split_params") or {}).items() if a in named}
    tile = {named[a]: p for a, p in (hints.get("tiling_params") or {}).items() if a in named}
    for name in missing if not split and not tile else ():
        length = source.length_of(name, lengths)
        into = split if name in source.of_programs else tile
        if length and length not in into:
            into[length] = name
    found = (TuningAxis(n, split.get(name, ""), tile.get(name, "")) for name, n in lengths.items())
    return [a for a in found if a.split in missing or a.tile in missing]


class _Source:
    """Which names of a kernel go into which, over any number of assignments."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        self.parts: dict[str, set[str]] = {}
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._assigned(target, node.value)
            elif isinstance(node, ast.For):
                self._assigned(node.target, node.iter)
        self.compared = [p for node in nodes if isinstance(node, ast.Compare) for p in _pairs(node)]
        self.loops = [n for n in nodes if isinstance(n, ast.Call) and _last(n.func).endswith("range")]
        products = [n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)]
        sides = [(self.of(n.left), _names(n.right)) for n in products] + [
            (self.of(n.right), _names(n.left)) for n in products
        ]
        self.of_programs = set[str]().union(*(b for a, b in sides if PROGRAM in a))

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        for name in _names(target):
            self.parts.setdefault(name, set()).update(_names(value))

    def of(self, node: ast.AST) -> set[str]:
        """All names that go into an expression."""
        found: set[str] = set()
        left = _names(node)
        while left:
            name = left.pop()
            found.add(name)
            left |= self.parts.get(name, set()) - found
        return found

    def length_of(self, name: str, lengths: Mapping[str, int]) -> str:
        """The length that a parameter divides: by masks, or as the step of a loop; "" for none."""
        for small, large in self.compared:
            found = [n for n in lengths if n in _names(large)]
            if found and name in self.of(small):
                return found[0]
        for call in self.loops:
            if len(call.args) == 3 and name in _names(call.args[2]):
                found = [n for n in lengths if n in self.of(call.args[1])]
                return found[0] if found else ""
        return ""


def _pairs(node: ast.Compare) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is below what."""
    for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
        if isinstance(op, ast.Lt | ast.LtE):
            yield left, right
        elif isinstance(op, ast.Gt | ast.GtE):
            yield right, left


def _names(node: ast.AST) -> set[str]:
    return {_last(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)}


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


# -- sizes -------------------------------------------------------------------------------------------------------------


def _values(a: TuningAxis, cores: int, programs: int, most: int) -> Iterator[dict[str, int]]:
    """Sizes of the parameters of an axis. programs: of a grid that is no function, so that each has to take its share."""
    if not a.split:
        yield from ({a.tile: t} for t in _halves(min(a.length, most), 6))
        return
    shares = _halves(-(-a.length // cores), 3) if a.tile else _halves(min(-(-a.length // cores), most), 9)
    for share in [_rounded(-(-a.length // programs))] if programs else shares:
        tiles = _halves(min(share, most), 5) if a.tile else []
        yield from ({a.split: share, a.tile: t} for t in tiles)
        if not a.tile:
            yield {a.split: share}


def _halves(longest: int, count: int) -> list[int]:
    """Sizes from the longest downwards, without repetition."""
    sizes = [_rounded(-(-longest // (1 << k))) for k in range(count)]
    return list(dict.fromkeys(sizes))


def _rounded(n: int) -> int:
    """Up to whole blocks of 32 bytes; a short axis to a power of two."""
    return -(-n // WHOLE_ROW) * WHOLE_ROW if n > WHOLE_ROW else 1 << max(0, n - 1).bit_length()
