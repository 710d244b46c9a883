"""A script run as Python would run it, with the simulator in Triton's place.

`run_script` gives its exit status. An exception of the script itself is shown as Python shows it, without the frames of
ascendtile; what the simulator refuses or finds out is an error with the place in the script that launched the kernel
(`errors.py` has both).
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from ... import triton_shim
from ...checks.written.scratch import numpy_marked
from ...errors import AscendtileError, UsageError
from ...l2.chain import chain
from ...observers import watch
from ...record.run import Run
from . import errors as script_errors

FAILED = 1


@dataclass(frozen=True)
class Script:
    """name: path of a file or, with `module`, a module's name. arguments: what the script finds in sys.argv."""

    name: str
    arguments: tuple[str, ...] = ()
    module: bool = False


@dataclass(frozen=True)
class ScriptOutcome:
    """Exit status of a script, and the message of what ended it early."""

    status: int = 0
    error: str | None = None


def run_script(
    script: Script, tell: Callable[[Run], None], devices: Sequence[str] = ("npu",)
) -> ScriptOutcome:
    """Run it and `tell` of its launches. Errors of the simulator are raised, with the place of the launch added."""
    with (
        watch(tell),
        chain(),
        triton_shim.installed(devices),
        _like_python(script),
        numpy_marked(sys.path[0]),
    ):
        try:
            _start(script)
        except SystemExit as e:
            return _exit_status(e.code)
        except AscendtileError as e:
            raise script_errors.placed(e, script.name) from None
        except Exception as e:
            sys.stderr.write(script_errors.shown(e, script.name))
            return ScriptOutcome(FAILED, f"{type(e).__name__}: {e}".removesuffix(": "))
    return ScriptOutcome()


def _start(script: Script) -> None:
    start = _module if script.module else _folder if os.path.isdir(script.name) else _file
    start(script)


def _folder(script: Script) -> None:
    """`python FOLDER` runs the __main__.py in it."""
    if not os.path.isfile(os.path.join(script.name, "__main__.py")):
        raise UsageError(
            f"{script.name} is a folder without __main__.py: name a file in it, or an operator (`ascendtile ops` lists them)"
        )
    runpy.run_path(script.name, run_name="__main__")


def _file(script: Script) -> None:
    path = script.name
    try:
        source = Path(path).read_bytes()
    except OSError as e:
        raise UsageError(f"{path}: cannot read the script: {e.strerror}") from None
    main = ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None)
    sys.modules["__main__"] = main
    exec(compile(source, path, "exec"), main.__dict__)


def _module(script: Script) -> None:
    try:
        runpy.run_module(script.name, run_name="__main__", alter_sys=True)
    except ImportError as e:
        if not script_errors.frames(e, script.name).shown:
            raise UsageError(f"cannot run module {script.name}: {e}") from None
        raise


@contextlib.contextmanager
def _like_python(script: Script) -> Iterator[None]:
    """sys.argv, sys.path[0] and __main__ as Python sets them, and back."""
    argv, path, main = sys.argv, list(sys.path), sys.modules.get("__main__")
    first = os.getcwd() if script.module else os.path.dirname(os.path.realpath(script.name))
    if os.path.isdir(script.name) and not script.module:
        first = script.name
    sys.argv = [script.name, *script.arguments]
    sys.path.insert(0, first)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
        if main is not None:
            sys.modules["__main__"] = main


def _exit_status(code: object) -> ScriptOutcome:
    """Of `sys.exit(code)`: a text is written to standard error and means 1."""
    if code is None:
        return ScriptOutcome()
    if isinstance(code, int):
        return ScriptOutcome(code & 0xFF)
    sys.stderr.write(f"{code}\n")
    return ScriptOutcome(FAILED, str(code))
