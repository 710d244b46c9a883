"""The tensors that a launch wrote, for as long as their owner keeps them: a record does not hold them, and none is saved."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import UsageError
from ..precision.metrics import ErrorReport


class Written:
    """Weak references to the tensors. compare: (tensors by name, right ones by name) -> errors."""

    def __init__(
        self, sources: Mapping[str, Any] | None = None, compare: Callable[..., Any] | None = None
    ) -> None:
        self.kept = {n: weakref.ref(x) for n, x in (sources or {}).items()}
        self.compare = compare

    def __reduce__(self) -> Any:
        return Written, ()

    def errors(self, kernel: str, right: Mapping[str, Any]) -> dict[str, ErrorReport]:
        """Errors of what the tensors hold now. Raises `UsageError`."""
        if self.compare is None:
            raise UsageError(
                f"{kernel}.compare_with: only a run that has just computed values knows its tensors"
            )
        gone = [n for n in right if n in self.kept and self.kept[n]() is None]
        if gone:
            raise UsageError(
                f"{kernel}.compare_with: the tensor given as {gone[0]!r} is gone; keep it until it is compared"
            )
        found: dict[str, ErrorReport] = self.compare({n: ref() for n, ref in self.kept.items()}, right)
        return found
