"""Warnings about source lines: what several operations of a line have in common is said once, with their number."""

from __future__ import annotations

from typing import Any

from ..frontend.program import Op


class LineWarnings:
    """Warnings of a launch in the order in which they came up."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, str], dict[int, dict[str, float]]] = {}

    def add(self, op: Op, text: str, **numbers: float) -> None:
        """Note `text` for an operation; `{name}` in it stands for the sum of that number over the operations of the line."""
        self._found.setdefault((op.loc.file, op.loc.line, text), {})[op.id] = numbers

    def __len__(self) -> int:
        """Different warnings so far."""
        return len(self._found)

    def saved(self) -> dict[Any, Any]:
        """The warnings so far, for `restore`."""
        return {key: dict(ops) for key, ops in self._found.items()}

    def restore(self, saved: dict[Any, Any]) -> None:
        """Forget what came up since `saved`."""
        self._found = saved

    def words(self) -> tuple[str, ...]:
        """`file:line: text` for each, `; n operations of this line` behind what n operations of the line share."""
        return tuple(self._sentence(*key, ops) for key, ops in self._found.items())

    @staticmethod
    def _sentence(file: str, line: int, text: str, ops: dict[int, dict[str, float]]) -> str:
        every = list(ops.values())
        if every[0]:
            text = text.format(**{n: sum(x[n] for x in every) for n in every[0]})
        return f"{file}:{line}: {text}{f'; {len(ops)} operations of this line' if len(ops) > 1 else ''}"
