"""Which files a child sees: Python, its packages, libraries of the system; an empty /tmp of its own.

Everything else is not there: neither the home folder, nor the folder of the task, nor one that an earlier child wrote.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterable

import ascendtile

from .namespaces import BIND, NO_DEVICES, NO_SUID, READ_ONLY, mount, mount_read_only, turn_root, unmount

BUILT_AT = "/tmp"  # a folder of every Linux: covered by the new root, in this process's view alone
OLD = "/old"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/sys/devices/system/cpu")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime")
DEVICES = ("null", "zero", "full", "random", "urandom")
REMOUNT = 32
PACKAGES = ("site-packages", "dist-packages")
FEW_BYTES = 1 << 20  # of a root of empty folders
_shown: list[str] = []  # and `_linked`: since this process entered its view
_linked: dict[str, str] = {}


def python_folders() -> list[str]:
    """Folders of this Python, of its packages, and of this one, which an editable installation keeps elsewhere."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    found = [os.path.join(p, name) for p in prefixes for name in ("lib", "lib64", "pyvenv.cfg")]
    found += [os.path.dirname(sys.executable), os.path.dirname(os.path.realpath(sys.executable))]
    found += [p for p in sys.path if os.path.basename(p) in PACKAGES]
    specs = (importlib.util.find_spec(f"ascendtile.{name}") for name in ascendtile.__all__)
    return found + [p for s in specs if s is not None for p in s.submodule_search_locations or ()]


def outermost(paths: Iterable[str]) -> list[str]:
    """Those that exist and are in none of the others, whose links are followed."""
    kept: list[str] = []
    for path in sorted({os.path.realpath(p) for p in paths if os.path.exists(p)} - {"/"}):
        if not kept or not path.startswith(kept[-1] + "/"):
            kept.append(path)
    return kept


def links(paths: Iterable[str]) -> dict[str, str]:
    """Those that are links, or stand in folders that are, and what they lead to."""
    wanted = {os.path.abspath(p) for p in paths if os.path.exists(p)}
    return {p: os.path.realpath(p) for p in sorted(wanted) if os.path.realpath(p) != p}


def enter(folders: Iterable[str]) -> None:
    """From now on this process, which must have mounts of its own, sees these folders and those of the system."""
    wanted = [*SYSTEM, *SYSTEM_FILES, *folders]
    _shown[:] = outermost(wanted)
    _linked.update(links(wanted))
    mount("tmpfs", BUILT_AT, "tmpfs", NO_SUID | NO_DEVICES, f"size={FEW_BYTES},mode=755")
    os.mkdir(BUILT_AT + OLD)
    turn_root(BUILT_AT, BUILT_AT + OLD)
    for path in _shown:
        _show(path, OLD + path)
    for path, target in _linked.items():
        _link(path, target)
    _devices()
    for name in ("/proc", "/tmp"):
        os.makedirs(name, exist_ok=True)
    mount("proc", "/proc", "proc")
    unmount(OLD)
    os.rmdir(OLD)
    mount("none", "/", flags=REMOUNT | BIND | READ_ONLY | NO_SUID | NO_DEVICES)


def _show(path: str, source: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    mount_read_only(source, path)


def _link(path: str, target: str) -> None:
    """A path that others name by a link. One whose folder is itself a link, or shown, is there already."""
    with contextlib.suppress(FileExistsError, OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)


def _devices() -> None:
    os.mkdir("/dev")
    os.symlink("/tmp", "/dev/shm")
    for name in DEVICES:
        path = f"/dev/{name}"
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
        mount(OLD + path, path, flags=BIND)


def fresh_places(bytes_of_tmp: int) -> None:
    """In a child with mounts of its own: only its own processes in /proc; in /tmp only what it is to see of that folder."""
    mount("proc", "/proc", "proc", NO_SUID | NO_DEVICES)
    kept = {path: os.open(path, os.O_PATH) for path in _shown if path.startswith("/tmp/")}
    mount("tmpfs", "/tmp", "tmpfs", NO_SUID | NO_DEVICES, f"size={bytes_of_tmp},mode=1777")
    for path, fd in kept.items():
        _show(path, f"/proc/self/fd/{fd}")
        os.close(fd)
    for path, target in _linked.items():
        if path.startswith("/tmp/"):
            _link(path, target)
