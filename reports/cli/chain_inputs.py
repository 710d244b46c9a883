"""What users write for `ascendtile chain`: a chain by its name or in a file of theirs, formats and modes by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import read_assignments

if TYPE_CHECKING:
    from ...kernels.chains import Chain

NEXT_NAME = re.compile(r",(?=\s*\w+=)")  # a comma before the next NAME=
OF_A_FORMAT = re.compile(
    r",\s*(bias|signed|infinities|nan|subnormals|zero|saturates|rounding)="
)  # a comma inside of e4m3:bias=11,nan=zero
INSIDE = "\0"  # in its place while a text is cut


def read_named(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """("x=fp16,w=e4m3", "y=e4m3:bias=11,nan=zero") by name; what follows a colon is of the format."""
    parts = (part for text in given for part in NEXT_NAME.split(_kept_together(text)))
    return read_assignments(ctx, option, tuple(x.replace(INSIDE, ",") for x in parts))


def read_choices(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, list[str]]:
    """("x=fp16,fp32",) as values by name."""
    found = {n: _kept_together(text).split(",") for n, text in read_assignments(ctx, option, given).items()}
    return {n: [x.strip().replace(INSIDE, ",") for x in parts if x.strip()] for n, parts in found.items()}


def _kept_together(text: str) -> str:
    """The text with INSIDE for the commas inside of a format that is written out: those behind its colon."""
    head, colon, rest = text.partition(":")
    return head + colon + OF_A_FORMAT.sub(lambda m: INSIDE + m[0][1:], rest)


def find_chain(text: str) -> Chain:
    """The chain of that name, or the `CHAIN` of a Python file. Raises `UsageError`."""
    from ...kernels.chains import Chain, get_chain
    from ...simulator.errors import UsageError

    if not text.endswith(".py"):
        return get_chain(text)
    if not Path(text).is_file():
        raise UsageError(f"{text}: there is no such file")
    found = getattr(_loaded(text), "CHAIN", None)
    if not isinstance(found, Chain):
        raise UsageError(f"{text} defines no CHAIN, which is a Chain of ascendtile.kernels.chains")
    return found


def _loaded(path: str) -> Any:
    from ...simulator.errors import AscendtileError, UsageError
    from .inputs import module_of

    try:
        return module_of(path)
    except AscendtileError as e:
        raise UsageError(f"{path}: {e}") from None
    except Exception as e:  # whatever the file raises
        raise UsageError(f"{path}: importing it raised {type(e).__name__}: {e}") from e
