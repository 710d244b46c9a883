"""Where users may make no namespaces, but the system lets bubblewrap (`bwrap`) make some: the process that forks runs in it.

It has no network and sees the files that `file_view` would show. Its children see each other, and no process beside them.
Options: `bwrap(1)`, https://github.com/containers/bubblewrap.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable

from . import file_view
from .namespaces import LINUX

PROGRAM = "bwrap"
TRIED_SECONDS = 10.0

# Whether this system lets a process make the namespaces that `namespaces` makes: CLONE_NEWUSER and the others of it.
MAKES_NAMESPACES = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x78020000) != 0)"


@functools.cache
def is_needed() -> bool:
    """Whether it is there and works, and namespaces of our own do not."""
    if not LINUX or shutil.which(PROGRAM) is None:
        return False
    return not _succeeds([sys.executable, "-I", "-S", "-c", MAKES_NAMESPACES]) and _succeeds(
        [*command(()), "true"]
    )


def command(folders: Iterable[str]) -> list[str]:
    """What stands before a command that is to see these folders, those of Python and those of the system."""
    wanted = [*file_view.SYSTEM, *file_view.SYSTEM_FILES, *file_view.python_folders(), *folders]
    binds = [x for p in file_view.outermost(wanted) for x in ("--ro-bind", p, p)]
    links = [x for p, to in file_view.links(wanted).items() for x in ("--symlink", to, p)]
    places = ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    return [PROGRAM, "--unshare-all", "--die-with-parent", "--new-session", *places, *binds, *links, "--"]


def _succeeds(command: list[str]) -> bool:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TRIED_SECONDS,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
