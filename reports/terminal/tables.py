"""Shapes of lines: facts, tables and paragraphs, which fill the width of the console.

Columns have the width that a page of 80 columns gives them; on a wider terminal those whose cells are longer grow.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

from ..facts.texts import Bar, clean, cut
from .console import PAGE_WIDTH

NAME_WIDTH = 8  # of a fact
LONGEST_TEXT = 8 * PAGE_WIDTH  # of one remark; records may hold anything


class PageTable(Table):
    """A table whose columns grow to their longest cell, the first ones first, where the console is wider than a page."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        taken = sum((c.width or 0) + 1 for c in self.columns)
        room = max(0, options.max_width - max(PAGE_WIDTH, taken))
        fitted = copy(self)
        fitted.columns = []
        for column in self.columns:
            more = min(room, max(0, _longest(column) - column.width)) if column.width else 0
            room -= more
            fitted.columns.append(_widened(column, more))
        yield from Table.__rich_console__(fitted, console, options)


def _longest(column: Column) -> int:
    """Columns of the terminal that its longest line takes."""
    texts = (x.plain for x in column.cells if isinstance(x, Text))
    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


def _widened(column: Column, more: int) -> Column:
    if not column.no_wrap or column.width is None:
        return replace(column, width=column.width + more if column.width else column.width)
    width = column.width + more
    return replace(column, width=width, _cells=[_cut(x, width) for x in column.cells])


def _cut(cell: Any, width: int) -> Any:
    return Text(cut(cell.plain, width), cell.style) if isinstance(cell, Text) else cell


def make_table(*columns: tuple[str, int]) -> PageTable:
    """Columns of (title, width), whose cells are cut; one whose title begins with '>' is flushed right."""
    return _table(columns, lambda right: "dim" if right else "bold", no_wrap=True, overflow="crop")


def folding(*columns: tuple[str, int | None], heads: bool = True) -> PageTable:
    """Columns likewise, whose cells fold; width 0 is what the page has left, None that of the longest cell, if there is
    room. heads: whether the titles are shown."""
    left = PAGE_WIDTH - sum((width or 0) + 1 for _, width in columns)
    sized = [(title, left if width == 0 else width) for title, width in columns]
    table = _table(sized, lambda _: "", overflow="fold")
    table.header_style, table.show_header = "bold", heads
    return table


def _table(columns: Any, style: Callable[[bool], str], **how: Any) -> PageTable:
    table = PageTable(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="")
    for title, width in columns:
        right = title.startswith(">")
        side: Any = "right" if right else "left"
        table.add_column(Text(title.removeprefix(">"), style(right)), width=width, justify=side, **how)
    return table


def add_row(table: Table, *cells: str | Bar, style: str = "") -> None:
    """Cells, each of which is cut to the width of its column."""
    table.add_row(*(x if isinstance(x, Bar) else Text(clean(x)) for x in cells), style=style)


def fact(name: str, text: str, style: str = "") -> Table:
    """One line of the page, such as "bound   HBM bandwidth allows ..."."""
    return _beside(Text(name, style="dim"), NAME_WIDTH, text, style)


def item(text: str, style: str) -> Table:
    """One of a list, beside its dash."""
    return _beside(Text("- "), 2, text, style)


def _beside(head: Text, width: int, text: str, style: str) -> Table:
    table = Table.grid()
    table.add_column(width=width)
    table.add_column(overflow="fold")
    table.add_row(head, Text(clean(text, LONGEST_TEXT), style=style))
    return table


class CutLine:
    """A head and a text that is cut where the line ends."""

    def __init__(self, head: str, text: str, style: str = "") -> None:
        self.head, self.text, self.style = head, text, style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(2, options.max_width - cell_len(self.head))
        yield Text.assemble(self.head, (cut(self.text, room), self.style))
