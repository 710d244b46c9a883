"""What Linux keeps from a process: the network, other processes, files. System calls that Python 3.11 has no names for.

Sources: unshare(2), setns(2), mount(2), mount_setattr(2), pid_namespaces(7), user_namespaces(7), capabilities(7), prctl(2).
Elsewhere (macOS), and where a system forbids namespaces to users, there are none of these, and replies say so.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable

LINUX = sys.platform == "linux"
NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 8, 0x1000, 0x4000, 0x40000
DETACH = 2  # of umount2

MOUNT_SETATTR = 442  # the number of the system call on every machine
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SET_DEATH_SIGNAL, SET_DUMPABLE, DROP_BOUND, SET_SUBREAPER, NO_NEW_PRIVILEGES = 1, 4, 24, 36, 38
CAPABILITIES_3 = 0x20080522  # version of the header of capset
MOST_CAPABILITIES = 64

# What a child is kept from.
NETWORK, PROCESSES, FILES, CALLS = "network", "processes", "files", "system calls"


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace")]


_c = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave these namespaces for new ones."""
    _check(_c.unshare(flags), "unshare")


def new_pids_for_children(own: int) -> None:
    """The next child is the first process of a new namespace of processes. own: this one's, `/proc/self/ns/pid`, open."""
    _check(_c.setns(own, NEW_PIDS), "setns")  # a second unshare is refused otherwise
    unshare(NEW_PIDS)


def new_user() -> None:
    """A user namespace and no network; only this user exists in it, who has every capability there and none outside."""
    user, group = os.getuid(), os.getgid()
    unshare(NEW_USER | NEW_NET)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        write("/proc/self/" + name, text)


def write(path: str, text: str) -> None:
    """Write into a file of /proc or /sys."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def mount(source: str, target: str, kind: str = "none", flags: int = 0, options: str = "") -> None:
    """Mount `source` at `target`."""
    arguments = [x.encode() for x in (source, target, kind)]
    _check(_c.mount(*arguments, ctypes.c_ulong(flags), options.encode() or None), f"mount {target}")


def mount_read_only(source: str, target: str) -> None:
    """`target` shows `source` and what is mounted below it, and nothing can be written there."""
    mount(source, target, flags=BIND | RECURSIVE)
    wanted = _MountAttributes(READ_ONLY | NO_SUID)
    done = _c.syscall(
        MOUNT_SETATTR, AT_FDCWD, target.encode(), AT_RECURSIVE, ctypes.byref(wanted), ctypes.sizeof(wanted)
    )
    _check(done, f"mount_setattr {target}")


def turn_root(new: str, old: str) -> None:
    """`new`, a mount, is the root from now on, and the root that was is seen at `old`, a folder in it."""
    _check(_c.pivot_root(new.encode(), old.encode()), "pivot_root")
    os.chdir("/")


def unmount(target: str) -> None:
    """Take it away; what is open stays open."""
    _check(_c.umount2(target.encode(), DETACH), f"umount {target}")


def control(option: int, value: int, more: int = 0) -> None:
    """prctl; without Linux nothing."""
    if LINUX:
        _check(_c.prctl(option, *(ctypes.c_ulong(x) for x in (value, more, 0, 0))), "prctl")


def end_with_parent() -> None:
    """The kernel kills this process when the thread that forked it ends."""
    control(SET_DEATH_SIGNAL, signal.SIGKILL)


def give_up_capabilities() -> None:
    """No capability is left, and nothing that is executed gets one."""
    if not LINUX:
        return
    with contextlib.suppress(OSError):  # beyond the last one, or without the right to drop any
        for capability in range(MOST_CAPABILITIES):
            control(DROP_BOUND, capability)
    control(NO_NEW_PRIVILEGES, 1)
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_3, 0)
    _check(_c.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def succeeds(attempt: Callable[[], None]) -> bool:
    """Whether it can be done here: tried in a process of its own."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            attempt()
            code = 0
        except OSError:
            pass  # what is not allowed
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0
