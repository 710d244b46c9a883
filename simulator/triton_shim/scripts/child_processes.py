"""Processes that a script starts: the simulator is in Triton's place there, too, and their launches reach the report.

A new interpreter (`multiprocessing` with spawn or forkserver, `subprocess`) learns of it from its environment: PYTHONPATH
begins with `for_children/`, and ASCENDTILE_CHILD says which device is in force and where launches are to be written.
A forked process has everything but the report. Each process writes a file of its own, a launch at a time, so
that one that is ended loses none; the report reads them when the script is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import AscendtileError
from ...messages import Message
from ...record.codec import decode_plain, encode_message
from ...record.loading import load_run
from ...record.run import Run
from .collecting import Collector, key_of

VARIABLE = "ASCENDTILE_CHILD"
PATH = "PYTHONPATH"
FOLDER = str(Path(__file__).resolve().with_name("for_children"))
SUFFIX = ".launches"
PATIENCE = 3.0  # seconds before anything is said of processes that do not end


class Ledger:
    """Writes the launches of one process into `folder`: a line each, and a record of the dearest one of each row.

    A line is JSON: [number of the row, name of a record or null, time in us, cycles, faults].
    """

    def __init__(self, folder: str) -> None:
        self.process = os.getpid()
        self.path = os.path.join(folder, f"{self.process}-{uuid.uuid4().hex}{SUFFIX}")
        self.found = Collector()
        self.rows: dict[Any, int] = {}
        self.records = 0
        self.file: BinaryIO | None = None

    def tell(self, run: Run) -> None:
        """Write a launch."""
        if self.file is None:
            self.file = open(self.path, "ab", buffering=0)  # noqa: SIM115
        key = self.found.tell(run)
        row = self.rows.setdefault(key, len(self.rows))
        record = self._record(run) if self.found.groups[key].dearest is run else None
        faults = [encode_message(m) for m in run.faults]
        self.file.write(json.dumps([row, record, run.time_us, run.cycles, faults]).encode() + b"\n")

    def _record(self, run: Run) -> str:
        """The file's name of a record of `run`."""
        self.records += 1
        path = f"{self.path}.{self.records}.run"
        run.save(path)
        return os.path.basename(path)


class Gatherer:
    """Is told of launches, by this process and by those forked from it."""

    def __init__(self, found: Collector | None, folder: str) -> None:
        """found: None in a process that was started, which writes everything down."""
        self.found, self.folder = found, folder
        self.reporting = None if found is None else os.getpid()
        self.ledger: Ledger | None = None

    def tell(self, run: Run) -> None:
        """Add a launch; in a forked process, write it down."""
        process = os.getpid()
        if self.found is not None and process == self.reporting:
            self.found.tell(run)
            return
        if self.ledger is None or self.ledger.process != process:
            self.ledger = Ledger(self.folder)
        if os.path.isdir(self.folder):  # otherwise the script is over, nobody reads it any more
            self.ledger.tell(run)


@contextlib.contextmanager
def with_children(found: Collector, options: dict[str, Any], devices: Sequence[str]) -> Iterator[Gatherer]:
    """Launches of this process and of all that it starts inside of the block go to `found`.

    options: those of `simulator.device`, as JSON can hold them. devices: as `triton_shim.install` takes them.
    """
    folder = tempfile.mkdtemp(prefix="ascendtile-")
    gatherer = Gatherer(found, folder)
    message = json.dumps({"folder": folder, "options": _portable(options), "devices": list(devices)})
    before = {name: os.environ.get(name) for name in (VARIABLE, PATH)}
    failure = ""
    here = contextlib.ExitStack()
    _joined.append(here)  # this process tells of its launches itself, also where another one has started it
    os.environ[VARIABLE] = message
    os.environ[PATH] = os.pathsep.join(filter(None, (FOLDER, before[PATH])))
    try:
        yield gatherer
    except AscendtileError as e:
        failure = f"; the script has failed: {str(e).splitlines()[0]}"
        raise
    finally:
        _joined.remove(here)
        if os.getpid() == gatherer.reporting:
            try:
                _wait_for_children(failure)
            finally:
                _restore(before)
                read_ledgers(folder, found)
                shutil.rmtree(folder, ignore_errors=True)


def _portable(options: dict[str, Any]) -> dict[str, Any]:
    """A product that is a file is found from every folder."""
    product = options.get("product")
    if not product or not os.path.exists(product):
        return options
    return {**options, "product": os.path.abspath(product)}


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _wait_for_children(failure: str = "", patience: float = PATIENCE) -> None:
    """What Python does when a script ends: pools are told to end, and processes that are no daemons are waited for.

    It says so after `patience` seconds, with the `failure` that nobody has been told of yet.
    """
    pools = sys.modules.get("concurrent.futures.process")
    if pools is not None and hasattr(pools, "_python_exit"):
        pools._python_exit()
        vars(pools)["_global_shutdown"] = False  # this process goes on, and may open pools of its own
    processes = sys.modules.get("multiprocessing")
    left = [] if processes is None else [p for p in processes.active_children() if not p.daemon]
    end = time.monotonic() + patience
    for p in left:
        p.join(max(0.0, end - time.monotonic()))
    slow = [p for p in left if p.is_alive()]
    if slow:
        numbers = ", ".join(str(p.pid) for p in slow)
        sys.stderr.write(
            f"waiting for processes that the script started: {numbers} (Ctrl-C ends this){failure}\n"
        )
        sys.stderr.flush()
    for p in slow:
        p.join()


def read_ledgers(folder: str, found: Collector) -> None:
    """Add what the processes wrote."""
    for path in sorted(Path(folder).glob(f"*{SUFFIX}")):
        found.processes += 1
        found.unread_processes += not _read(path, found)


def _read(path: Path, found: Collector) -> bool:
    """Add the launches of one process; whether the file was whole."""
    rows: dict[int, Run] = {}
    for line in path.read_bytes().splitlines(keepends=True):
        if not line.endswith(b"\n"):
            return False
        row, record, time_us, cycles, faults = json.loads(line)
        if record is not None:
            rows[row] = load_run(path.with_name(record))
        told = decode_plain(faults, tuple[Message, ...], "faults")
        found.add(key_of(rows[row]), rows[row], time_us, cycles, told)
    return True


# ---- in a process that was started ----


# What holds the device and the watcher in place until the process ends.
_joined: list[contextlib.ExitStack] = []


def join() -> None:
    """Put the simulator in Triton's place in this process, if the environment says so; a second call does nothing."""
    message = os.environ.get(VARIABLE)
    if message is None or _joined:
        return
    from ... import triton_shim
    from ...device import device_everywhere
    from ...l2.chain import chain
    from ...observers import watch

    given = json.loads(message)
    kept = contextlib.ExitStack()
    _joined.append(kept)
    kept.enter_context(device_everywhere(**given["options"]))
    kept.enter_context(chain())
    kept.enter_context(watch(Gatherer(None, given["folder"]).tell))
    triton_shim.install(given["devices"])
