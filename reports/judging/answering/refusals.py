"""What an answer's process is refused: files, processes, sockets, native code, frames of its callers, hooks.

Python tells its audit hooks of all of these, and a hook cannot be taken away again (PEP 578). What the answer's own code
asks for is refused with an error and written down as a cheat, whatever it does with the error. Torch, numpy and this package
go on as they do.
"""

from __future__ import annotations

import _thread
import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ....simulator.triton_shim.torch_npu import torch_devices
from ..verdict import Cheat

# Event of the audit hook, or how it begins -> cheat. Refused if the answer's code asks, through Python's own modules or not.
ASKED = {
    "subprocess.": "sandbox_escape",
    "os.system": "sandbox_escape",
    "os.exec": "sandbox_escape",
    "os.fork": "sandbox_escape",
    "os.posix_spawn": "sandbox_escape",
    "os.spawn": "sandbox_escape",
    "os.kill": "sandbox_escape",
    "os.listdir": "sandbox_escape",
    "os.scandir": "sandbox_escape",
    "os.chmod": "sandbox_escape",
    "os.link": "sandbox_escape",
    "os.mkdir": "sandbox_escape",
    "os.remove": "sandbox_escape",
    "os.rename": "sandbox_escape",
    "os.rmdir": "sandbox_escape",
    "os.symlink": "sandbox_escape",
    "os.truncate": "sandbox_escape",
    "os.chdir": "sandbox_escape",
    "pty.": "sandbox_escape",
    "shutil.": "sandbox_escape",
    "signal.": "sandbox_escape",
    "socket.": "sandbox_escape",
    "tempfile.": "sandbox_escape",
    "webbrowser.": "sandbox_escape",
    "ctypes.": "native_code",
    "mmap.": "native_code",
    "gc.": "stack_read",
    "sys._current_frames": "stack_read",
    "sys._current_exceptions": "stack_read",
    "sys.setprofile": "stack_read",
    "sys.settrace": "stack_read",
    "sys.addaudithook": "stack_read",
    "threading.setprofile": "stack_read",
}
# Refused if it is the answer's code itself that asks: Python's own modules do it for honest ends (a named tuple).
ITSELF = {
    "sys._getframe": "stack_read",
    "compile": "hidden_code",
    "exec": "hidden_code",
    "code.__new__": "hidden_code",
    "marshal.loads": "hidden_code",
    "pickle.find_class": "hidden_code",
}
FRAMES = ("tb_frame", "gi_frame", "cr_frame", "ag_frame", "f_back", "gi_yieldfrom")
REPLACED = ("__code__", "__defaults__", "__kwdefaults__", "__class__")
STANDS_BETWEEN = torch_devices.__name__  # wraps Thread.start
LOOKING = ("inspect", "traceback", "logging", "pdb", "bdb")  # modules that hand frames to whoever asks
READ_ONLY_FILES = ("/dev/null", "/proc/cpuinfo", "/proc/meminfo", "/proc/self/status", "/etc/localtime")
READ_ONLY_FOLDERS = ("/sys/devices/system", "/usr/share/zoneinfo", "/usr/lib", "/lib")

Found = dict[tuple[str, str, int | None], Cheat]  # by name, message and line


class RefusedByJudgeError(PermissionError):
    """What an answer gets that asks for what it is refused."""


class Guard:
    """Refusals of a process. cheats: what was asked for. `arm()` cannot be undone but by `disarm`, which `arm` gives."""

    def __init__(self, files: tuple[str, ...]) -> None:
        self.files = frozenset(files)  # names that the answer's code has
        self.cheats: Found = {}

    def arm(self) -> Callable[[], None]:
        """From now on, until what this gives is called."""
        armed, inside = [True], [False]
        library, packages = _folders()
        files, cheats = self.files, self.cheats

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if not armed or inside[0]:
                return
            name = _refused(event)
            if name is None:
                return
            inside[0] = True
            try:
                found = _cheat(event, args, name, sys._getframe(1), files, library, packages)
            finally:
                inside[0] = False
            if found is not None:
                cheats.setdefault((found.name, found.message, found.line), found)
                raise RefusedByJudgeError(f"refused by the judge: {found.message}")

        sys.addaudithook(hook)
        give_back = _without_threads(armed, files, library, cheats)

        def disarm() -> None:
            armed.clear()
            give_back()

        return disarm


def _without_threads(
    armed: list[bool], files: frozenset[str], library: tuple[str, ...], cheats: Found
) -> Callable[[], None]:
    """No thread for the answer: what it computes is not seen there. Older versions of Python tell no hook of a thread."""
    start = _thread.start_new_thread

    def started(*args: Any, **kwargs: Any) -> int:
        line = _asker(sys._getframe(1), files, library, None) if armed else None
        if line is None:
            return start(*args, **kwargs)
        found = Cheat(name="thread_escape", message="starts a thread", line=line)
        cheats.setdefault((found.name, found.message, found.line), found)
        raise RefusedByJudgeError(f"refused by the judge: {found.message}")

    names = ((_thread, "start_new_thread"), (_thread, "start_new"), (threading, "_start_new_thread"))
    for module, name in names:
        setattr(module, name, started)

    def give_back() -> None:
        for module, name in names:
            setattr(module, name, start)

    return give_back


def _refused(event: str) -> str | None:
    """The cheat that an event may be."""
    if event in ITSELF:
        return ITSELF[event]
    if event == "open":
        return "sandbox_escape"
    if event in ("object.__getattr__", "object.__setattr__"):
        return "stack_read"
    return next((name for begin, name in ASKED.items() if event.startswith(begin)), None)


def _folders() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Folders of Python's own modules, and of installed packages, this one among them."""
    paths = sysconfig.get_paths()
    library = {os.path.realpath(paths[n]) + os.sep for n in ("stdlib", "platstdlib")}
    packages = {os.path.realpath(paths[n]) + os.sep for n in ("purelib", "platlib")}
    for name in ("numpy", "torch", "ml_dtypes"):
        module = sys.modules.get(name)
        if module is not None and module.__file__:
            packages.add(os.path.dirname(os.path.realpath(os.path.dirname(module.__file__))) + os.sep)
    for top in ("simulator", "kernels", "tiling", "reports"):
        module = sys.modules.get(f"ascendtile.{top}")
        packages |= {os.path.realpath(p) + os.sep for p in getattr(module, "__path__", ())}
    return tuple(library), tuple(packages)


def _cheat(
    event: str,
    args: tuple[Any, ...],
    name: str,
    frame: Any,
    files: frozenset[str],
    library: tuple[str, ...],
    packages: tuple[str, ...],
) -> Cheat | None:
    """What is refused, None where it is not."""
    if event == "open":
        return _opened(args, frame, files, (*library, *packages))
    if event.startswith("object."):
        return _attribute(event, args, frame, files, library)
    if event in ITSELF:
        asker = _asker(frame, files, library, LOOKING if event == "sys._getframe" else ())
    else:
        asker = _asker(frame, files, library, None)
    if asker is None or (event == "ctypes.dlopen" and args[0] is None):
        return None
    return Cheat(name=name, message=f"asks Python for {event}", line=asker, evidence=_shown(args))


def _asker(
    frame: Any, files: frozenset[str], library: tuple[str, ...], past: tuple[str, ...] | None
) -> int | None:
    """The line of the answer that asks, None if others do. past: of Python's modules those to look behind; None: all."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file in files:
            return int(frame.f_lineno)
        full_name = str(frame.f_globals.get("__name__", ""))
        module = full_name.partition(".")[0]
        of_python = (
            file.startswith("<") or os.path.realpath(file).startswith(library)
        ) and "-packages" not in file
        if full_name != STANDS_BETWEEN and (not of_python or (past is not None and module not in past)):
            return None
        frame = frame.f_back
    return None


def _line_of(frame: Any, files: frozenset[str]) -> int | None:
    """The innermost line of the answer that is under way."""
    while frame is not None:
        if frame.f_code.co_filename in files:
            return int(frame.f_lineno)
        frame = frame.f_back
    return None


def _attribute(
    event: str, args: tuple[Any, ...], frame: Any, files: frozenset[str], library: tuple[str, ...]
) -> Cheat | None:
    """Frames are not read by the answer itself (tracebacks are for Python's modules), functions of others not rewritten."""
    target, attribute = args[0], str(args[1])
    kind = type(target).__name__
    if event == "object.__setattr__":
        line = _asker(frame, files, library, None)
        own = isinstance(target, FunctionType) and (target.__code__.co_filename in (*files, "<string>"))
        if (
            attribute not in REPLACED
            or line is None
            or own
            or (attribute == "__class__" and _is_own(target, files))
        ):
            return None
        return Cheat(name="function_replaced", message=f"sets {attribute} of a {kind}", line=line)
    helper = str(frame.f_globals.get("__name__", "")).partition(".")[0] in LOOKING
    asker = frame.f_back if helper and frame.f_back is not None else frame
    if attribute not in FRAMES or asker.f_code.co_filename not in files:
        return None
    return Cheat(name="stack_read", message=f"reads {attribute} of a {kind}", line=asker.f_lineno)


def _is_own(target: Any, files: frozenset[str]) -> bool:
    """Whether an object is of a class that the answer defines and that is no tensor."""
    torch = sys.modules.get("torch")
    module = sys.modules.get(type(target).__module__)
    of_answer = getattr(module, "__file__", None) in files
    return of_answer and not (torch is not None and isinstance(target, torch.Tensor))


def _opened(
    args: tuple[Any, ...], frame: Any, files: frozenset[str], folders: tuple[str, ...]
) -> Cheat | None:
    """Files of Python and of packages are read, by anybody; nothing is written, and no open file taken over."""
    line = _line_of(frame, files)
    if line is None:
        return None
    path, mode, flags = args[0], args[1], args[2]
    if isinstance(path, str) and path.startswith("<"):  # what Python takes for the file of a text without one
        return None
    written = (isinstance(mode, str) and bool(set(mode) & set("wax+"))) or bool(
        isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    )
    if isinstance(path, int):
        return Cheat(name="sandbox_escape", message="takes over an open file by its number", line=line)
    real = os.path.realpath(os.fsdecode(path))
    allowed = real in READ_ONLY_FILES or (real + os.sep).startswith((*folders, *READ_ONLY_FOLDERS))
    if real == os.devnull or (not written and (allowed or _is_importing(frame, files))):
        return None
    return Cheat(name="sandbox_escape", message=f"{'writes' if written else 'opens'} a file", line=line)


def _is_importing(frame: Any, files: frozenset[str]) -> bool:
    """Whether a module of others is being imported, between the answer and here: it may read what it likes."""
    while frame is not None and frame.f_code.co_filename not in files:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _shown(args: tuple[Any, ...]) -> str:
    """Arguments that are texts, as they are the same in every run."""
    return ", ".join(repr(x)[:60] for x in args if isinstance(x, str))
