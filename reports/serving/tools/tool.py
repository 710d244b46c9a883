"""What a tool is, and the parts of schemas that several share.

Schemas are JSON Schema 2020-12, objects only, without `oneOf` and its kin at the top: models that call tools are given
these schemas, and their interfaces refuse such ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....simulator.errors import UsageError

if TYPE_CHECKING:
    from ...judging.processes.limits import Limits
    from ...judging.processes.pool import Job

Arguments = Mapping[str, Any]
Schema = dict[str, Any]

MOST_TEXT = 1_000_000  # characters of a source file
MOST_FILES, MOST_WORDS, MOST_WORD = 32, 64, 4096
MOST_SIZE = 2**40
SAFE_NAME = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$"  # of a file: no folder, nothing hidden
PRODUCT_NAME = "^[a-z0-9_]{1,64}$"  # of `products`: no path


@dataclass(frozen=True)
class Tool:
    """One thing that the server can be asked for.

    work: from checked arguments to plain data, in a worker; `UsageError` for what cannot be done. directed: instead, done by
    several workers of one job that the server directs; it runs nothing of the client's itself. paths: argument -> the
    argument whose text it stands for, where the server has a folder of files (`--root`).
    """

    name: str
    title: str
    text: str
    properties: Mapping[str, Schema]
    work: Callable[[Arguments], dict[str, Any]] | None = None
    directed: Callable[[Arguments, Job, Limits, Path], dict[str, Any]] | None = None
    required: tuple[str, ...] = ()
    paths: Mapping[str, str] | None = None

    def is_directed(self, arguments: Arguments) -> bool:
        """Whether it is done by `directed`: where there is no other way, or a task is given."""
        return self.directed is not None and (self.work is None or "task" in arguments)

    @property
    def schema(self) -> Schema:
        """JSON Schema of the arguments."""
        body: Schema = {"type": "object", "properties": dict(self.properties), "additionalProperties": False}
        return body | ({"required": list(self.required)} if self.required else {})


def text(about: str, most: int = 200, **more: Any) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": most, "description": about, **more}


def source(about: str) -> Schema:
    """Text of a file."""
    return text(about, MOST_TEXT)


def flag(about: str, usual: bool) -> Schema:
    return {"type": "boolean", "default": usual, "description": about}


def number(about: str, low: int, high: int, usual: int | None = None) -> Schema:
    given = {} if usual is None else {"default": usual}
    return {"type": "integer", "minimum": low, "maximum": high, "description": about, **given}


def choice(about: str, *values: str) -> Schema:
    return {"type": "string", "enum": list(values), "description": about}


def named(about: str, values: Schema | None = None) -> Schema:
    """An object of names and values: knobs, sizes, figures."""
    plain = {"type": ["string", "number", "boolean"], "maxLength": 200}
    return {
        "type": "object",
        "maxProperties": MOST_WORDS,
        "additionalProperties": values or plain,
        "description": about,
    }


def words(about: str) -> Schema:
    item = {"type": "string", "maxLength": MOST_WORD}
    return {"type": "array", "items": item, "maxItems": MOST_WORDS, "description": about}


PRODUCT = text("A name of the tool `products`; without, the usual product.", 64, pattern=PRODUCT_NAME)
SET = named('Changed figures of the product, such as {"buffers.ub": "256KiB"}.')
BY_KIND = "Who makes the code; without, ascendc for operators and triton-ascend for scripts."
COMPILER = choice(BY_KIND, "triton-ascend", "ascendc")
MODES = (
    "Precision mode of the Cube: KEEP_DTYPE (usual), ALLOW_FP32_DOWN_PRECISION, USE_FP16, USE_HF32, USE_FP32_ADD, "
    "or a split such as BF16X3."
)
MODE = text(MODES)
OP = text("An operator by name, such as matmul: `docs` has a page operators/NAME of each.")
CASE = text("A case of the operator; without, its first.")
_NUMBER = {"minimum": 0, "maximum": MOST_SIZE}
_SIZE = {"type": ["integer", "array"], **_NUMBER, "items": {"type": "integer", **_NUMBER}, "maxItems": 8}
SIZES = named('Sizes of your own instead of a case: {"rows": 64, "shape": [8, 3, 5]}.', _SIZE)
DTYPE = text("Data type of the inputs; without, the first that the product takes.")
OPTIONS = named('Arguments of the operator itself, such as {"reduction": "sum"}.')
FILES = {
    "type": "object",
    "maxProperties": MOST_FILES,
    "propertyNames": {"pattern": SAFE_NAME},
    "additionalProperties": {"type": "string", "maxLength": MOST_TEXT},
    "description": "Text files beside the source, by name, that it reads or imports.",
}


def one_of(arguments: Arguments, *names: str) -> str:
    """The one argument of these that is given."""
    given = [n for n in names if n in arguments]
    if len(given) != 1:
        got = " and ".join(given) or "none of them"
        raise UsageError(f"give one of {', '.join(names)}; got {got}")
    return given[0]


def case_of(arguments: Arguments) -> Any:
    """A case's name, or sizes by name; None for the first case."""
    if "case" in arguments and "sizes" in arguments:
        raise UsageError("case and sizes each say what to run on; give one of them")
    sizes = arguments.get("sizes")
    if sizes is None:
        return arguments.get("case")
    return {n: tuple(x) if isinstance(x, list) else x for n, x in sizes.items()}


def checked_files(arguments: Arguments, *reserved: str) -> dict[str, str]:
    """The files beside the source; none may take the place of the source itself."""
    files: dict[str, str] = dict(arguments.get("files", {}))
    for name in files:
        if not re.fullmatch(SAFE_NAME, name) or name in reserved:
            raise UsageError(f"files: {name!r} is no name to take; a plain one beside {', '.join(reserved)}")
    return files
