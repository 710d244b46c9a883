"""Compiles kernels given as text, through a file, as an author's kernel comes."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from types import ModuleType
from typing import Any

import ascendtile.simulator as sim
from ascendtile.simulator.ir.program import Program
from ascendtile.simulator.ir.types import PointerType
from ascendtile.simulator.precision import dtypes as ty

HEADER = "import ascendtile.simulator as sim\nimport ascendtile.simulator.language as tl\n"
_names = itertools.count()


def module(folder: Path, text: str) -> ModuleType:
    """Import `text`, below the usual imports, as a module of its own."""
    path = folder / f"kernels_{next(_names)}.py"
    path.write_text(HEADER + text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    out = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(out)
    return out


TYPES: dict[str, Any] = {
    "p": PointerType(ty.float32),
    "q": PointerType(ty.float32),
    "h": PointerType(ty.float16),
    "k": PointerType(ty.int32),
    "n": ty.int32,
    "m": ty.int32,
    "f": ty.float32,
}


def compiled(fn: Any, **constants: Any) -> Program:
    """The program of a kernel whose parameters are called as in `TYPES`; all others are compile-time values."""
    assert isinstance(fn, sim.JitFunction)
    names = [p.name for p in fn.parameters]
    types = {x: TYPES[x] for x in names if x in TYPES and x not in constants}
    rest = {x: constants.get(x, 8) for x in names if x not in types}
    return fn.program(types, rest)


def compile_body(folder: Path, body: str, before: str = "") -> Program:
    """Compile a kernel `(p, q, k, n, m, f, B)` with these lines as its body, indented by four."""
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    text = f"{before}\n@sim.jit\ndef kernel(p, q, h, k, n, m, f, B: tl.constexpr):\n{lines}\n"
    return compiled(module(folder, text).kernel)
