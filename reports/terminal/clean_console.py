"""A console that no text commands: records, stores and products may be anybody's, and terminals obey control characters."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ..facts.texts import clean


class CleanConsole(Console):
    """Writes control characters of texts as escapes; views that measure columns clean their texts before."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for part in super().render(renderable, options):
            if part.control or part.text.isprintable() or part.text == "\n":
                yield part
            else:
                yield Segment("\n".join(map(clean, part.text.split("\n"))), part.style)
