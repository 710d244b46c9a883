"""A server in a process of its own, as a user starts it, and what is left of it afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).with_name("ascendtile"))
WAIT_SECONDS = 120  # on a machine that is busy with other tests


@dataclass
class Served:
    """url, token: as it printed them. process: of the server; folder: its TMPDIR; idle: processes below it at rest."""

    process: subprocess.Popen
    url: str
    token: str
    folder: Path
    idle: set[int] = field(default_factory=set)

    def ask(self, tool, arguments, timeout=WAIT_SECONDS):
        """(status, JSON) of POST /v1/TOOL."""
        return self.fetch(f"/v1/{tool}", json.dumps(arguments).encode(), timeout=timeout)

    def fetch(self, path, body=None, timeout=WAIT_SECONDS, **headers):
        """(status, JSON) of a request; GET without a body."""
        usual = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body, usual | headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as e:
            with e:
                return e.code, json.load(e)

    def eventually(self, state, **wanted):
        """Wait until /v1/health says so."""
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            found = self.fetch("/v1/health")[1]
            if all(found[n] == x for n, x in wanted.items()):
                return
            time.sleep(0.05)
        raise AssertionError(f"{state}: wanted {wanted}, still {found}")


def descendants(pid):
    """Processes below one, by /proc."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = entry.read_text()
        except OSError:
            continue
        parents[int(entry.parent.name)] = int(text.rpartition(")")[2].split()[1])
    found = {pid}
    for _ in range(8):
        found |= {child for child, parent in parents.items() if parent in found}
    return found - {pid}


def gone(pids, seconds=20):
    """Those of the processes that are still there after a while."""
    deadline = time.monotonic() + seconds
    while (left := {p for p in pids if Path(f"/proc/{p}").exists()}) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """`start("--slots", "1")` starts a server over HTTP and gives it as Served, once it answers."""
    begun = []

    def begin(*options):
        folder = tmp_path_factory.mktemp("served")
        words = [COMMAND, "serve", "--http", "0", "--json", *options]
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=open(folder / "errors", "w"),  # noqa: SIM115
            env={**os.environ, "TMPDIR": str(folder)},
            text=True,
        )
        begun.append(process)
        told = json.JSONDecoder().decode(_object(process.stdout))
        return Served(process, told["url"], told.get("token", ""), folder)

    yield begin
    for process in begun:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(WAIT_SECONDS)
        process.stdout.close()


@pytest.fixture
def run_shell():
    """`run_shell(command, folder)`: what a command prints, which must succeed; skips where there is no curl."""
    if shutil.which("curl") is None:
        pytest.skip("no curl here")

    def run(command, folder):
        words = ("bash", "-c", command)
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout

    return run


def _object(stream):
    """The lines of one JSON object."""
    lines = []
    for line in stream:
        lines.append(line)
        if line == "}\n":
            break
    return "".join(lines)
