"""Where a kernel fails at run time: its line with a caret, and the program by number and by its place in the grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..errors import OutOfBoundsError, RunError
from ..ir.located_errors import at_line
from ..ir.program import Loc, Op

Grid = tuple[int, int, int]


class Site(NamedTuple):
    """An operation in a launch. reason: what went wrong with its index in a program, "" for nothing."""

    loc: Loc
    grid: Grid
    reason: Callable[[int], str] | None = None

    def error(self, message: str, kind: type[RunError] = RunError) -> RunError:
        """The error to raise: the message with file, line, column, source line and caret."""
        return kind(at_line(self.loc, message))

    def outside(self, what: str, program: int, way_out: str) -> OutOfBoundsError:
        """The error of an access of a program that leaves its tensor; way_out: where nothing is known of its index."""
        reason = self.reason(program) if self.reason else ""
        what = f"{what}. {f'The reason: {reason}' if reason else way_out}"
        out = OutOfBoundsError(at_line(self.loc, what))
        out.what, out.program = what, program
        return out

    def program(self, number: int) -> str:
        """How a message names a program."""
        return program_name(number, self.grid)


def place(op: Op) -> str:
    """`file:line` of an operation."""
    return f"{op.loc.file}:{op.loc.line}"


def program_name(number: int, grid: Grid) -> str:
    """`program 5`, and where the grid has more axes than one also what `tl.program_id` gives there."""
    x, y, z = grid
    number = int(number)
    if y == z == 1:
        return f"program {number}"
    ids = (number % x, number // x % y, number // (x * y))
    return f"program {number} (program_id {', '.join(map(str, ids[: 3 if z > 1 else 2]))})"
