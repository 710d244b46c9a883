"""A script run as Python would run it, with the simulator in Triton's place.

`run_script` gives its exit status. An exception of the script itself is shown as Python shows it, without the frames of
ascendtile; what the simulator refuses or finds out is an error with the place in the script that launched the kernel.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import ascendtile.simulator as simulator
from ascendtile.simulator import triton_shim
from ascendtile.simulator.errors import AscendtileError, UsageError
from ascendtile.simulator.watching import watch

from .collecting import Collector

PACKAGE = Path(simulator.__file__).resolve().parent.parent
OURS = tuple(str(PACKAGE / folder) + os.sep for folder in ("simulator", "kernels", "tiling", "reports"))
FAILED = 1


@dataclass(frozen=True)
class Script:
    """name: path of a file or, with `module`, a module's name. arguments: what the script finds in sys.argv."""

    name: str
    arguments: tuple[str, ...] = ()
    module: bool = False


def run_script(script: Script, found: Collector, devices: Sequence[str] = ("npu",)) -> int:
    """Run it and tell `found` of its launches. Errors of the simulator are raised, with the place of the launch added."""
    with watch(found.tell), triton_shim.installed(devices), _like_python(script):
        try:
            _module(script) if script.module else _file(script)
        except SystemExit as e:
            return _exit_status(e.code)
        except AscendtileError as e:
            raise _placed(e, script) from None
        except Exception as e:
            return _show(e, script)
    return 0


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
        if not _own_frames(e, script):
            raise UsageError(f"cannot run module {script.name}: {e}") from None
        raise


@contextlib.contextmanager
def _like_python(script: Script) -> Iterator[None]:
    """sys.argv, sys.path[0] and __main__ as Python sets them, and back."""
    argv, path, main = sys.argv, list(sys.path), sys.modules.get("__main__")
    first = os.getcwd() if script.module else os.path.dirname(os.path.realpath(script.name))
    sys.argv = [script.name, *script.arguments]
    sys.path.insert(0, first)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
        if main is not None:
            sys.modules["__main__"] = main


def _exit_status(code: object) -> int:
    """Of `sys.exit(code)`: a text is written to standard error and means 1."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return FAILED


# ---- exceptions ----


def _is_ours(file: str, script: Script) -> bool:
    """Whether a frame is ascendtile's, or of what Python runs modules with, and no part of the script."""
    if file == script.name:
        return False
    return file.startswith((*OURS, "<frozen runpy", "<frozen importlib")) or file == runpy.__file__


def _own_frames(error: BaseException, script: Script) -> list[traceback.FrameSummary]:
    return [f for f in traceback.extract_tb(error.__traceback__) if not _is_ours(f.filename, script)]


def _placed(error: AscendtileError, script: Script) -> AscendtileError:
    """The error with the place in the script that led to it."""
    frames = _own_frames(error, script)
    if not frames:
        return error
    at = frames[-1]
    text = f"{error}\n  launched at {at.filename}:{at.lineno}: {(at.line or '').strip()}"
    return UsageError(text) if isinstance(error, UsageError) else AscendtileError(text)


def _show(error: Exception, script: Script) -> int:
    """Print an exception as Python does, without our frames."""
    shown = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = shown
    while part is not None:
        part.stack = traceback.StackSummary.from_list(
            [f for f in part.stack if not _is_ours(f.filename, script)]
        )
        part = part.__cause__ or part.__context__
    sys.stderr.write("".join(shown.format()))
    if _inside(error, script):
        sys.stderr.write("(raised inside of ascendtile; ASCENDTILE_DEBUG=1 shows where)\n")
    return FAILED


def _inside(error: Exception, script: Script) -> bool:
    """Whether our code raised it, or what our code called: not the script, nor a function that it handed to us."""
    files = [f.filename for f in traceback.extract_tb(error.__traceback__)]
    ours = [_is_ours(file, script) for file in files]
    if False not in ours:
        return True
    first = ours.index(False)
    return True in ours[first:] and files[-1] not in files[first : first + ours[first:].index(True)]
