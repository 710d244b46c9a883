"""Files that users name: read whole within a limit, written whole or not at all. Every failure is a `UsageError`."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import UsageError


@contextmanager
def naming(path: str | Path, verb: str) -> Iterator[None]:
    """Turn what fails inside into a `UsageError` that names the file."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise UsageError(f"{path}: cannot {verb} it: {getattr(error, 'strerror', None) or error}") from None


def read_whole(path: str | Path, limit: int, what: str) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; `what` names it in messages ("a run record")."""
    with naming(path, "read"):
        size = regular_size(path, what)
        if size <= limit:
            with open(path, "rb") as file:
                data = file.read(limit + 1)
            size = len(data)
        if size > limit:
            raise UsageError(f"{what} has at most {limit} bytes, this file has {size} or more")
        return data


def write_whole(path: str | Path, data: bytes) -> None:
    """Write `data` beside `path`, sync it, then rename: a file that was there survives any failure.

    A link is followed, so the file that it points to is replaced. Devices and pipes are refused.
    """
    target = check_target(path)
    with naming(path, "write"):
        _write(target.with_name(f".ascendtile-{secrets.token_hex(8)}.part"), target, data)


def check_target(path: str | Path) -> Path:
    """The file that `write_whole(path, ...)` would replace; `UsageError` if it could not, as far as can be told."""
    if not str(path):
        raise UsageError("the name of the file to write is empty")
    with naming(path, "write"):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise UsageError("is a folder; give the name of a file")
        if target.exists() and not target.is_file():
            raise UsageError("is not a regular file, nothing was written; give the name of a file")
        if target.parent.exists() and not target.parent.is_dir():
            raise UsageError(f"{target.parent} is no folder, so nothing can be written there")
        if not target.parent.is_dir():
            raise UsageError(f"the folder {target.parent} does not exist; make it first")
        return target


def regular_size(path: str | Path, what: str) -> int:
    """Size of a regular file; `UsageError` for anything else. Ask before opening: a named pipe would wait."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise UsageError(f"is a folder; {what} is a file")
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"is not a regular file; {what} is one")
    return status.st_size


def _write(part: Path, target: Path, data: bytes) -> None:
    try:
        file = open(part, "xb")  # noqa: SIM115 (closed below; from here on the file is ours to remove)
    except FileNotFoundError:  # what folders such as /proc answer, though they are there
        if not target.parent.is_dir():
            raise
        raise UsageError(f"cannot write it: the folder {target.parent} takes no new files") from None
    try:
        with file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename last through a power cut, where the system lets a folder be synced."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def picked(x: object, names: str) -> dict[str, Any]:
    """Fields of `x` by name, in this order: picked(launch, "kernel grid cycles")."""
    return {n: getattr(x, n) for n in names.split()}
