"""What code that runs in a worker prints: the end of it is kept, and nothing gets to the worker's own streams."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

MOST_KEPT = 8000  # characters


class Tail(io.TextIOBase):
    """A stream that keeps the last characters that were written, however many there were."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        super().__init__()
        self.most, self.kept, self.dropped = most, "", 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        joined = self.kept + text
        self.kept = joined[-self.most :]
        self.dropped += len(joined) - len(self.kept)
        return len(text)

    def text(self) -> str:
        """What was kept, and how much was written before it."""
        return f"[{self.dropped} characters before]\n{self.kept}" if self.dropped else self.kept


@contextlib.contextmanager
def tailed() -> Iterator[Tail]:
    """Both streams of Python go to the tail that is given."""
    tail = Tail()
    with contextlib.redirect_stdout(tail), contextlib.redirect_stderr(tail):
        yield tail
