"""What the tests of processes call: functions of a request and files, in a child."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time as clock

import numpy as np

from ascendtile.reports.judging.processes import Limits, Zygote, packed, unpacked
from ascendtile.reports.judging.processes.watching import family


def echo(request, fds):
    return request


def told(request, fds):
    """What a child knows of the machine."""
    folders = {p: sorted(os.listdir(p)) for p in ("/", "/tmp", os.environ["HOME"]) if os.path.isdir(p)}
    return {
        "pids": [p for p in os.listdir("/proc") if p.isdigit()],
        "folders": folders,
        "variables": sorted(os.environ),
        "threads": threading.active_count(),
        "modules": sorted(sys.modules),
        "seen": [p for p in request.get("paths", ()) if os.path.exists(p)],
    }


def doubled(request, fds):
    arrays = unpacked(request["layout"], fds["arrays"], 1 << 20, writable=True)
    for x in arrays.values():
        x *= 2
    layout, fd = packed(arrays)
    return {"layout": layout}, {"doubled": fd}


def spins(request, fds):
    while True:
        pass


def sleeps(request, fds):
    clock.sleep(request["seconds"])
    return {}


def holds(request, fds):
    kept = [np.ones(1_000_000) for _ in range(request["pieces"])]
    clock.sleep(request.get("seconds", 0))
    return {"bytes": sum(x.nbytes for x in kept)}


def holds_a_file(request, fds):
    fd = os.memfd_create("much")
    while True:
        os.write(fd, bytes(1_000_000))


def leaves_memory_alone(request, fds):
    return {"bytes": np.zeros(request["bytes"], np.int8).nbytes}


def opens(request, fds):
    return {"fds": [os.dup(1) for _ in range(request["files"])]}


def writes(request, fds):
    with open("/tmp/written", "wb", buffering=0) as file:
        for _ in range(request["pieces"]):
            file.write(bytes(1_000_000))
    return {"folder": os.listdir("/tmp")}


def starts_many(request, fds):
    while True:
        subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])


def leaves_a_process(request, fds):
    """One that left the session of its parent."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            clock.sleep(600)
        os._exit(0)
    os.wait()
    return {}


def dies(request, fds):
    os.kill(os.getpid(), request["signal"])
    clock.sleep(5)
    return {}


def crashes(request, fds):
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    import ctypes

    ctypes.string_at(0)


def raises(request, fds):
    raise ValueError(request["text"])


def leaves(request, fds):
    os._exit(request["code"])


def prints(request, fds):
    print("to be read")
    os.write(2, b"and this\n")
    return {}


def answers(request, fds):
    """What is no answer, or a large one."""
    return {"list": [1], "text": "x" * request["size"], "number": {1: 2}}[request["kind"]]


def closes(request, fds):
    """Close all files, that of the answer too, and stay."""
    os.closerange(0, 1000)
    clock.sleep(600)


def connects(request, fds):
    socket.create_connection(("127.0.0.1", request["port"]), 5)
    return {}


def kills(request, fds):
    """Signals to other processes that it sees, and to itself."""
    refused = []
    for pid in (*request["pids"], os.getpid()):
        try:
            os.kill(pid, 0)
        except PermissionError:
            refused.append(pid)
    return {"refused": refused}


def reads_memory(request, fds):
    """Of the process that forked it, by a call."""
    import ctypes

    done = ctypes.CDLL(None, use_errno=True).process_vm_readv(os.getppid(), None, 0, None, 0, 0)
    return {"result": done, "error": ctypes.get_errno()}


def mounts(request, fds):
    from ascendtile.reports.judging.processes import namespaces

    refused = []
    attempts = {
        "mount": lambda: namespaces.mount("tmpfs", "/tmp", "tmpfs"),
        "unshare": lambda: namespaces.unshare(namespaces.NEW_USER),
        "write": lambda: open(request["path"], "w").close(),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError:
            refused.append(name)
    return {"refused": refused}


def calls_without_namespaces(request, fds):
    """Calls by a process that can make no namespaces: what children are kept from, and what came of the calls."""
    with Zygote(folders=[os.path.dirname(__file__)]) as zygote:
        replies = [
            zygote.call(f"process_functions:{name}", given, {}, Limits(**limits))
            for name, given, limits in request["calls"]
        ]
        left = family(zygote.process.pid)
    return {
        "kept_from": zygote.kept_from,
        "replies": [[r.status, r.reason or r.answer] for r in replies],
        "left": len(left),
    }
