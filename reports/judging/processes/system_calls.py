"""System calls that a child may not make: a filter of the kernel, which needs no right.

It holds where namespaces are forbidden. Refused are sockets of every kind but those between processes of this machine, other
processes' memory, and what changes the machine. Sources: seccomp(2); numbers from the kernel's `syscall_64.tbl` (x86_64) and
`asm-generic/unistd.h` (aarch64).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from . import namespaces

SET_SECCOMP, FILTER = 22, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER, MACHINE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data, little-endian
OTHER_ABI = 0x40000000  # x32: the same calls by other numbers
OWN_SOCKETS = 1  # AF_UNIX


@dataclass(frozen=True)
class _Machine:
    """audit: its number in linux/audit.h. socket, kill, tgkill: numbers of calls. refused: those that are always refused."""

    audit: int
    socket: int
    kill: int
    tgkill: int
    refused: tuple[int, ...]


# ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_getfd, pidfd_send_signal, tkill, rt_sigqueueinfo,
# rt_tgsigqueueinfo, io_uring_setup (which opens sockets, too), mount, umount2, pivot_root, unshare, setns, bpf,
# perf_event_open, keyctl, add_key, request_key, userfaultfd
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        41,
        62,
        234,
        (
            101,
            310,
            311,
            312,
            438,
            424,
            200,
            129,
            297,
            425,
            165,
            166,
            155,
            272,
            308,
            321,
            298,
            250,
            248,
            249,
            323,
        ),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        198,
        129,
        131,
        (117, 270, 271, 272, 438, 424, 130, 138, 240, 425, 40, 39, 41, 97, 268, 280, 241, 219, 217, 218, 282),
    ),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def are_filtered() -> bool:
    """Whether this system takes the filter: tried in a process of its own."""
    return namespaces.LINUX and platform.machine() in _MACHINES and namespaces.succeeds(_try)


def _try() -> None:
    namespaces.control(namespaces.NO_NEW_PRIVILEGES, 1)
    refuse(others_are_seen=True)


def refuse(others_are_seen: bool) -> None:
    """From now on, here and in what this process starts. Where it sees others it signals itself and its group only."""
    machine = _MACHINES[platform.machine()]
    code = b"".join(_filter(machine, os.getpid() if others_are_seen else 0))
    program = _Program(len(code) // 8, code)
    namespaces.control(SET_SECCOMP, FILTER, ctypes.addressof(program))


def _filter(machine: _Machine, pid: int) -> Iterator[bytes]:
    """Instructions; a jump is over as many of those that follow. pid: the only process that gets signals, 0: any."""
    yield from (
        _step(LOAD, MACHINE),
        _step(EQUAL, machine.audit, 1, 0),
        _step(RETURN, REFUSE),
        _step(LOAD, NUMBER),
    )
    yield from (_step(AT_LEAST, OTHER_ABI, 0, 1), _step(RETURN, REFUSE))
    for number in machine.refused:
        yield from (_step(EQUAL, number, 0, 1), _step(RETURN, REFUSE))
    yield from _only(machine.socket, (OWN_SOCKETS,))
    if pid:
        yield from _only(machine.kill, (pid, 0, -pid & 0xFFFFFFFF))
        yield from _only(machine.tgkill, (pid,))
    yield _step(RETURN, ALLOW)


def _only(number: int, allowed: tuple[int, ...]) -> Iterator[bytes]:
    """A call whose first argument must be one of these."""
    yield from (_step(EQUAL, number, 0, 3 + len(allowed)), _step(LOAD, FIRST_ARGUMENT))
    for k, value in enumerate(allowed):
        yield _step(EQUAL, value, len(allowed) - k, 0)
    yield from (_step(RETURN, REFUSE), _step(RETURN, ALLOW))


def _step(code: int, value: int, when_true: int = 0, when_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, when_true, when_false, value)
