"""What is said of an error that ends a script: where it comes from in the user's files, and what may help.

An exception of the script itself is shown as Python shows it, without the frames of ascendtile; an error of the simulator
gets the place in the script that led to it. `script` is the name of the script: the path of a file, or a module's name.
"""

from __future__ import annotations

import os
import runpy
import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path

import ascendtile.simulator as simulator

from ...errors import AscendtileError, UsageError
from ...trials import knobs
from .. import importing, standin
from ..torch_npu import torch_devices

FOLDERS = ("simulator", "kernels", "tiling", "reports")
FILE = Path(simulator.__file__)
# Frames name files as Python found them: where a link is on the way, not by the place that it leads to.
OURS = tuple(f"{at.parent.parent / folder}{os.sep}" for folder in FOLDERS for at in (FILE, FILE.resolve()))
INSTALLED = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})
STANDARD = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
LAUNCHING = ("run", "time", "launch", "time_launch")  # functions of ours that a launch passes through
IMPORTING = (standin.__file__, importing.__file__)
CUDA_HINT = (
    "hint: tensors stay on the CPU here, so `.is_cuda` is False, `.is_npu` is True and `.device` is cpu; for a script that "
    "asks for CUDA say `ascendtile run --cuda SCRIPT` (or triton_shim.install(devices=['npu', 'cuda'])): then "
    '`.is_cuda` is True and "cuda" means the simulated device'
)
TORCH_HINT = "hint: torch is not installed; `pip install 'ascendtile[torch]'` adds it"


@dataclass(frozen=True)
class Frames:
    """The frames of a traceback that are not ours, in order, and whether ours launched a kernel."""

    shown: list[traceback.FrameSummary]
    launch: bool

    @property
    def users(self) -> list[traceback.FrameSummary]:
        """Those in the user's files, or in installed packages, or whatever there is: the first of these with any."""
        apart = [f for f in self.shown if not is_standard(f.filename) and not f.filename.startswith("<")]
        return [f for f in apart if not f.filename.startswith(INSTALLED)] or apart or self.shown


def is_standard(file: str) -> bool:
    """Whether a file is of Python's own library."""
    return file.startswith(STANDARD) and not file.startswith(INSTALLED)


def is_ours(file: str, script: str) -> bool:
    """Whether a frame is ascendtile's, or of what Python runs modules with, and no part of the script."""
    if file == script:
        return False
    return file.startswith((*OURS, "<frozen runpy", "<frozen importlib")) or file == runpy.__file__


def frames(error: BaseException, script: str) -> Frames:
    """The frames of an error's traceback."""
    found = traceback.extract_tb(error.__traceback__)
    ours = [f for f in found if is_ours(f.filename, script)]
    shown = [f for f in found if not is_ours(f.filename, script)]
    return Frames(shown, any(f.name in LAUNCHING and f.filename.startswith(OURS[:2]) for f in ours))


def placed(error: AscendtileError, script: str) -> AscendtileError:
    """The error with the place in the user's files that led to it."""
    found = frames(error, script)
    if not found.shown:
        return error
    at = found.users[-1]
    verb = "launched at" if found.launch else "at"
    if type(error.__cause__).__name__ == "RemoteTraceback":  # of multiprocessing
        verb = "in a process that was given work at"
    elif not found.launch and str(error).startswith(f"{at.filename}:"):
        return error
    text = f"{error}\n  {verb} {_place(at)}"
    inner = [f for f in found.shown[found.shown.index(at) + 1 :] if _tells(f)]
    if inner:
        text += f"\n  through {_place(inner[-1])}"
    return UsageError(text) if isinstance(error, UsageError) else AscendtileError(text)


def _tells(frame: traceback.FrameSummary) -> bool:
    """Whether a frame of a library says something: those of Python and torch do not."""
    file = frame.filename
    return not is_standard(file) and not file.startswith("<") and f"{os.sep}torch{os.sep}" not in file


def _place(frame: traceback.FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno}: {(frame.line or '').strip()}"


def shown(error: Exception, script: str) -> str:
    """An exception as Python prints it, without our frames, and a hint where there is one."""
    report = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = report
    while part is not None:
        kept = [f for f in part.stack if not is_ours(f.filename, script)]
        part.stack = traceback.StackSummary.from_list(kept)
        part = part.__cause__ or part.__context__
    bare = isinstance(error, SyntaxError) and not report.stack and not report.__context__
    text = "".join(report.format_exception_only() if bare else report.format())
    if _inside(error, script):
        text += "(raised inside of ascendtile; ASCENDTILE_DEBUG=1 shows where)\n"
    found = hint(error, script)
    return text + (f"{found}\n" if found else "")


def _inside(error: Exception, script: str) -> bool:
    """Whether our code raised it, or what our code called: not the script, nor a function that it handed to us."""
    files = [f.filename for f in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and not (error.filename or "").startswith(OURS):
        return False
    if isinstance(error, ImportError | AttributeError) and files and files[-1] in IMPORTING:
        return False  # said on purpose, of a name that a stand-in lacks
    passing = (torch_devices.__file__, knobs.__file__)  # these only pass on what they are asked
    files = files[:-1] if files and files[-1] in passing else files
    ours = [is_ours(file, script) and file not in passing for file in files]
    if False not in ours:
        return True
    first = ours.index(False)
    return True in ours[first:] and files[-1] not in files[first : first + ours[first:].index(True)]


def hint(error: Exception, script: str) -> str:
    """What may help with an error that a script on a device without CUDA, or on a machine without torch, ends with."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "torch":
        return TORCH_HINT
    users = frames(error, script).users
    line = (users[-1].line or "") if users else ""
    asked = isinstance(error, AssertionError) and "is_cuda" in line
    torch = isinstance(error, RuntimeError | AssertionError) and any(
        part in str(error) for part in ("compiled with CUDA", "NVIDIA driver", "No CUDA GPUs")
    )
    return CUDA_HINT if asked or torch else ""


__all__ = ["frames", "hint", "placed", "shown"]
