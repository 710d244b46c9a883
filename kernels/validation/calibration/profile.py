"""A profile of a board: op_summary_*.csv of msProf, or kernel_details.csv of the PyTorch profiler, as tasks.

Releases spell the columns differently (Task Duration(us), Task Duration, Duration(us); Block Dim, Block Num), so names are
read without case, blanks, underscores and unit. Shapes look like "4096,1024;1024,1024", also with quotes inside of the
cell; nothing between two semicolons is a scalar. Nothing of a file is believed: sizes and numbers are checked, and what
breaks a rule is a UsageError with file, line and rule.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.record.files import read_whole

LARGEST_FILE = 256 << 20
MOST_ROWS = 1_000_000
LONGEST_CELL = 20_000
MOST_BLOCKS = 1 << 16
LARGEST_DIMENSION = 1 << 40
MOST_DIMENSIONS = 16
LONGEST_US = 1e9
ABSENT = {"", "n/a", "na", "nan", "none", "-"}
US = {"": 1.0, "us": 1.0, "μs": 1.0, "µs": 1.0, "ns": 1e-3, "ms": 1e3}

# What a task has, and how the column may be called: without case, blanks, underscores and unit.
COLUMNS: dict[str, tuple[str, ...]] = {
    "name": ("opname", "name", "kernelname"),
    "type": ("optype", "type"),
    "core": ("tasktype", "acceleratorcore"),
    "us": ("taskduration", "duration"),
    "blocks": ("blockdim", "blocknum"),
    "inputs": ("inputshapes",),
    "input_types": ("inputdatatypes",),
    "input_formats": ("inputformats",),
    "outputs": ("outputshapes",),
    "output_types": ("outputdatatypes",),
    "output_formats": ("outputformats",),
}
NEEDED = {
    "type": "OP Type",
    "us": "Task Duration(us)",
    "inputs": "Input Shapes",
    "input_types": "Input Data Types",
}
UNIT = re.compile(r"\((\w+)\)$")
DTYPES = {
    "FLOAT16": "fp16", "HALF": "fp16", "BF16": "bf16", "BFLOAT16": "bf16", "FLOAT": "fp32", "FLOAT32": "fp32",
    "INT8": "int8", "INT32": "int32", "INT64": "int64", "UINT8": "uint8", "BOOL": "bool",
}  # fmt: skip


@dataclass(frozen=True)
class ProfiledTensor:
    """shape: dimensions, () of a scalar, None where the profile does not know. dtype: as the tables of measurements have it,
    or as the profile wrote it if they have no such type. format: ND, FRACTAL_NZ ..., "" where nobody says.
    """

    shape: tuple[int, ...] | None
    dtype: str
    format: str

    @property
    def size(self) -> int:
        """Elements; 0 where the shape is not known."""
        return 0 if self.shape is None else math.prod(self.shape)


@dataclass(frozen=True)
class ProfiledTask:
    """One launch. line: of the file. core: AI_CORE, AI_VECTOR_CORE, MIX_AIC, AI_CPU ...; blocks: None where nobody says.
    odd: what is wrong with its cells, so that nothing can be told of it; "" if nothing is.
    """

    line: int
    name: str
    type: str
    core: str
    us: float
    blocks: int | None
    inputs: tuple[ProfiledTensor, ...]
    outputs: tuple[ProfiledTensor, ...]
    odd: str = ""


def read_profile(path: str | Path) -> tuple[ProfiledTask, ...]:
    """The tasks of a profile. Raises UsageError with file, line and rule if it is none, or broken."""
    raw = read_whole(path, LARGEST_FILE, "a profile")
    try:
        return tuple(_tasks(raw.decode("utf-8-sig"), str(path)))
    except UnicodeDecodeError as e:
        raise UsageError(f"{path}: byte {e.start} is not UTF-8 text") from None
    except csv.Error as e:
        raise UsageError(f"{path}: not a CSV table: {e}") from None


def plain_name(column: str) -> str:
    """ "Task Duration(us)" -> "taskduration"."""
    return re.sub(r"[\s_]", "", UNIT.sub("", column.strip().strip('"').strip())).lower()


def columns_of(head: list[str], where: str) -> dict[str, int]:
    """Number of the column of each part of a task; UsageError if one is lacking or there twice."""
    names = [plain_name(column) for column in head]
    found: dict[str, int] = {}
    for part, spellings in COLUMNS.items():
        places = [k for spelling in spellings for k, name in enumerate(names) if name == spelling]
        if len(places) > 1 and names[places[0]] == names[places[1]]:
            raise UsageError(
                f"{where}: the column {head[places[0]].strip()!r} is there twice; leave one of them"
            )
        if places:
            found[part] = places[0]
    lacking = [name for part, name in NEEDED.items() if part not in found]
    if lacking:
        raise UsageError(
            f"{where}: no column {', '.join(lacking)}; a profile has Op Name, OP Type, Task Duration(us), Block Dim, Input "
            "Shapes, Input Data Types, Output Shapes ... (op_summary_*.csv with --task-time=l1, kernel_details.csv with "
            "record_shapes and Level1)"
        )
    return found


def _tasks(text: str, path: str) -> Iterator[ProfiledTask]:
    reader = csv.reader(io.StringIO(text), strict=True)
    head = next(reader, None)
    if not head:
        raise UsageError(f"{path}: empty; the first line must name the columns of a profile")
    columns = columns_of(head, f"{path}: line 1")
    unit = _unit(head[columns["us"]], path)
    for count, cells in enumerate(reader):
        where = f"{path}: line {reader.line_num}"
        if count >= MOST_ROWS:
            raise UsageError(f"{where}: a profile has at most {MOST_ROWS} rows")
        if cells:
            yield _task(_parts(cells, columns, len(head), where), reader.line_num, where, unit)


def _unit(column: str, path: str) -> float:
    found = UNIT.search(column.strip())
    unit = found[1].lower() if found else ""
    if unit not in US:
        raise UsageError(f"{path}: line 1: {column.strip()!r} is in {unit}, not one of {', '.join(US)[2:]}")
    return US[unit]


def _parts(cells: list[str], columns: Mapping[str, int], width: int, where: str) -> dict[str, str]:
    if len(cells) != width:
        raise UsageError(f"{where}: {len(cells)} cells, the first line names {width} columns")
    parts = {part: cells[place].strip() for part, place in columns.items()}
    for part, cell in parts.items():
        if len(cell) > LONGEST_CELL:
            raise UsageError(
                f"{where}: {part} has {len(cell)} characters, at most {LONGEST_CELL} are allowed"
            )
    return parts


def _task(parts: dict[str, str], line: int, where: str, unit: float) -> ProfiledTask:
    return ProfiledTask(
        line=line,
        name=parts.get("name", ""),
        type=parts["type"],
        core=parts.get("core", "").upper().replace(" ", "_"),
        us=_duration(parts["us"], where) * unit,
        blocks=_blocks(parts.get("blocks", ""), where),
        inputs=_operands(parts, "inputs", "input", where),
        outputs=_operands(parts, "outputs", "output", where),
        odd=_more_types(parts, "inputs", "input") or _more_types(parts, "outputs", "output"),
    )


def _more_types(parts: Mapping[str, str], shapes: str, kind: str) -> str:
    """What to say of a task with more types than shapes, so that nobody knows which belongs to which; "" of others."""
    text, types = _unquoted(parts.get(shapes, "")), _listed(parts.get(f"{kind}_types", ""))
    count = text.count(";") + 1
    if text.lower() in ABSENT or not any(types[count:]):
        return ""
    return f"{count} {kind} shapes and {len(types)} {kind} data types"


def _duration(cell: str, where: str) -> float:
    try:
        us = 0.0 if cell.lower() in ABSENT else float(cell)
    except ValueError:
        us = math.nan
    if not (0.0 <= us <= LONGEST_US):
        raise UsageError(f"{where}: duration {cell[:40]!r} is no number from 0 to {LONGEST_US:g}")
    return us


def _blocks(cell: str, where: str) -> int | None:
    if cell.lower() in ABSENT:
        return None
    if not (cell.isascii() and cell.isdecimal() and len(cell) < 10 and int(cell) <= MOST_BLOCKS):
        raise UsageError(f"{where}: Block Dim {cell[:40]!r} is no whole number from 0 to {MOST_BLOCKS}")
    return int(cell) or None


def _operands(parts: Mapping[str, str], shapes: str, kind: str, where: str) -> tuple[ProfiledTensor, ...]:
    """A profile that knows no shapes has no operands; a type without a shape belongs to one that is not known."""
    text = _unquoted(parts.get(shapes, ""))
    if text.lower() in ABSENT:
        return ()
    types, formats = (_listed(parts.get(f"{kind}_{what}", "")) for what in ("types", "formats"))
    sizes: list[tuple[int, ...] | None] = [_shape(cell, where) for cell in text.split(";")]
    sizes += [None for extra in types[len(sizes) :] if extra]
    padding = [""] * len(sizes)
    every = zip(sizes, types + padding, formats + padding, strict=False)
    return tuple(ProfiledTensor(n, _dtype(t), f.upper().removeprefix("FORMAT_")) for n, t, f in every)


def _unquoted(cell: str) -> str:
    """Profilers put shapes between quotes of their own, inside of those of CSV."""
    return cell.strip().strip("\"'").strip()


def _listed(cell: str) -> list[str]:
    text = _unquoted(cell)
    return [] if text.lower() in ABSENT else [part.strip() for part in text.split(";")]


def _shape(text: str, where: str) -> tuple[int, ...] | None:
    """None where a dimension is negative: one that is known at run time only."""
    parts = [p.strip() for p in text.strip().strip("[]").split(",") if p.strip()]
    if len(parts) > MOST_DIMENSIONS:
        raise UsageError(
            f"{where}: a shape has {len(parts)} dimensions, at most {MOST_DIMENSIONS} are allowed"
        )
    sizes = [_dimension(p, where) for p in parts]
    return None if any(n < 0 for n in sizes) else tuple(sizes)


def _dimension(text: str, where: str) -> int:
    digits = text.removeprefix("-")
    if not (
        digits.isascii() and digits.isdecimal() and len(digits) < 16 and int(digits) <= LARGEST_DIMENSION
    ):
        raise UsageError(f"{where}: dimension {text[:40]!r} is no whole number up to 2^40")
    return int(text)


def _dtype(text: str) -> str:
    name = text.upper().removeprefix("DT_")
    return DTYPES.get(name, name)
