"""The token that clients over HTTP must show: made anew, or kept in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from ...simulator.errors import UsageError

LEAST, MOST = 16, 4096  # characters
BYTES = 32  # of a new one


def new_token() -> str:
    """256 random bits, in letters that a header and a shell take."""
    return secrets.token_urlsafe(BYTES)


def token_of(path: Path) -> str:
    """The token in the file, made with mode 600 if there is none. `UsageError`: others can read it, or it is no token."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(path)
    except OSError as e:
        raise UsageError(f"--token-file {path}: cannot write it: {e.strerror}") from None
    token = new_token()
    with open(fd, "w", encoding="ascii") as file:
        file.write(f"{token}\n")
    return token


def _read(path: Path) -> str:
    try:
        with open(path, encoding="ascii") as file:
            _check_owner(path, os.fstat(file.fileno()))
            token = file.read(MOST + 2).strip()
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"--token-file {path}: cannot read it: {e}") from None
    if not LEAST <= len(token) <= MOST or not token.isprintable() or " " in token:
        raise UsageError(
            f"--token-file {path}: a token is one line of {LEAST} to {MOST} characters without blanks, "
            f"this one has {len(token)}; remove the file, and a new one is made"
        )
    return token


def _check_owner(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"--token-file {path} is no plain file")
    if found.st_mode & 0o077 or found.st_uid != os.geteuid():
        mode = stat.S_IMODE(found.st_mode)
        raise UsageError(f"--token-file {path} can be read by others (mode {mode:o}): chmod 600 {path}")
