"""Statements of a drawn kernel with what they do, and the kernel that they make."""

from __future__ import annotations

import itertools
import linecache
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .trees import Expr

Run = Callable[[dict[str, Any]], None]
_numbers = itertools.count()


@dataclass(frozen=True)
class Block:
    """Statements with what they do to the variables of one program."""

    lines: list[str]
    run: Run


@dataclass(frozen=True)
class Kernel:
    """Source of a module with a function `kernel`; arguments without the outputs; what a program does to the tensors."""

    source: str
    grid: tuple[int, ...]
    tensors: dict[str, np.ndarray]
    scalars: dict[str, float]
    block: Block
    product: str

    def arguments(self) -> dict[str, Any]:
        """New arrays, as a launch takes them."""
        return {**{n: x.copy() for n, x in self.tensors.items()}, **self.scalars}

    def expected(self) -> dict[str, np.ndarray]:
        """The tensors after all programs, one after another."""
        tensors = {n: x.copy() for n, x in self.tensors.items()}
        with np.errstate(all="ignore"):
            for pid in range(math.prod(self.grid)):
                names = {n.removesuffix("_ptr"): x for n, x in tensors.items()}
                self.block.run({**names, **self.scalars, "pid": np.int32(pid), "column": pid % self.grid[0]})
        return tensors

    def compiled(self) -> Any:
        return function(self.source)


def function(source: str) -> Any:
    """`kernel` of a module that has a text but no file."""
    name = f"<drawn {next(_numbers)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"__name__": "drawn_kernel"}
    exec(compile(source, name, "exec"), scope)
    return scope["kernel"]


def assigned(name: str, x: Expr) -> Block:
    def run(env: dict[str, Any]) -> None:
        env[name] = x.value(env)

    return Block([f"{name} = {x.text}"], run)


def together(blocks: list[Block]) -> Block:
    def run(env: dict[str, Any]) -> None:
        for block in blocks:
            block.run(env)

    return Block([line for block in blocks for line in block.lines], run)


def indented(block: Block) -> list[str]:
    return ["    " + line for line in block.lines]
