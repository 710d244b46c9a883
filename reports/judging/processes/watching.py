"""What the processes of a child hold, read from outside: memory, and how many they are."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator

from .namespaces import LINUX

BLOCK = 512  # bytes of a unit of st_blocks, stat(2)
SPARE_FDS = 3  # those of every process


def family(pid: int) -> list[int]:
    """This process and those that it started, directly or not, and that still are."""
    found, waiting = {pid: None}, [pid]
    while waiting:
        new = [p for p in _children(waiting.pop()) if p not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return list(found)


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                yield from map(int, file.read().split())


def threads(pids: list[int]) -> int:
    """How many threads they have together; a process has one at least."""
    return sum(_figures(p).get("Threads", 1) for p in pids)


def held_bytes(pids: list[int], given: set[int], before_bytes: int) -> int:
    """Memory that they touched beyond what each was forked with, and files in memory that they have open.

    given: files (inodes) that are not theirs. before_bytes: what the process held that they were forked from.
    """
    if not LINUX:
        return max(0, _told_by_ps(pids) - before_bytes)
    found = [_figures(p) for p in pids]
    own = sum(max(0, x.get("RssAnon", 0) - before_bytes) for x in found)
    mapped = sum(x.get("RssShmem", 0) for x in found)
    files = {k: n for p in pids for k, n in _memory_files(p) if k not in given}
    return own + max(mapped, sum(files.values()))


def _figures(pid: int) -> dict[str, int]:
    """Bytes, or numbers, of /proc/PID/status."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
        rows = re.findall(r"^(Rss\w+|Threads):\s+(\d+)( kB)?", file.read(), re.M)
        return {name: int(number) << (10 if unit else 0) for name, number, unit in rows}
    return {}


def _memory_files(pid: int) -> Iterator[tuple[int, int]]:
    """(inode, bytes) of its open files that are in memory and have no path."""
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                path = f"/proc/{pid}/fd/{fd}"
                if os.readlink(path).startswith("/memfd:"):
                    found = os.stat(path)
                    yield found.st_ino, found.st_blocks * BLOCK


def _told_by_ps(pids: list[int]) -> int:
    done = subprocess.run(
        ["ps", "-o", "rss=", "-p", ",".join(map(str, pids))], capture_output=True, text=True
    )
    return sum(map(int, done.stdout.split())) << 10
