"""Calls in processes of their own: each limit is kept and told with both numbers, nothing is left, nothing is seen."""

import errno
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ascendtile.reports.judging.processes import Limits, Zygote, bubblewrap
from ascendtile.reports.judging.processes.file_view import python_folders
from ascendtile.reports.judging.processes.watching import family
from ascendtile.simulator.errors import UsageError

CALLED = Path(__file__).resolve().parent / "called"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
MB = 1_000_000


@pytest.fixture(scope="module")
def zygote():
    with Zygote(folders=[CALLED]) as made:
        yield made


@pytest.fixture(scope="module")
def call(zygote):
    def called(name, request=None, fds=None, **limits):
        return zygote.call(f"process_functions:{name}", request or {}, fds, Limits(**limits))

    yield called
    wait_until(lambda: len(family(zygote.process.pid)) <= 2)


def wait_until(true, seconds=5.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_answer_is_what_the_function_returned(call):
    request = {"text": "é\0", "list": [1, 2.5, None, True], "nested": {"a": {}}}
    reply = call("echo", request)
    assert (reply.status, reply.answer, reply.reason, reply.fds) == ("ok", request, "", {})


def test_arrays_go_there_and_come_back(call):
    from ascendtile.reports.judging.processes import packed, unpacked

    given = {
        "x": np.arange(6, dtype=np.float32).reshape(2, 3),
        "n": np.array(3),
        "none": np.zeros((0, 4), np.int64),
    }
    layout, fd = packed(given)
    reply = call("doubled", {"layout": layout}, {"arrays": fd})
    found = unpacked(reply.answer["layout"], reply.fds["doubled"], MB)
    mine = unpacked(layout, fd, MB)
    os.close(fd)
    reply.close()
    for name, x in given.items():
        assert found[name].dtype == x.dtype
        np.testing.assert_array_equal(found[name], 2 * x)
        np.testing.assert_array_equal(mine[name], x)  # nothing that is done there is seen here


@pytest.mark.parametrize(
    ("name", "request_", "limits", "status", "reason"),
    [
        pytest.param(
            *("spins", {}, {"cpu_s": 1}, "time", "took more than 1 s of processor time"),
            marks=pytest.mark.exhaustive,
        ),
        ("sleeps", {"seconds": 60}, {"wall_s": 0.2}, "time", "took more than 0.2 s"),
        (
            "holds",
            {"pieces": 1000, "seconds": 60},
            {"memory_bytes": 100 * MB},
            "memory",
            "held more than 100000000 bytes of memory",
        ),
        ("starts_many", {}, {"processes": 8}, "killed", "had more than 8 processes and threads"),
        ("opens", {"files": 100}, {"files": 32}, "crashed", "OSError: [Errno 24]"),
        ("raises", {"text": "as it is"}, {}, "crashed", "ValueError: as it is"),
        ("leaves", {"code": 3}, {}, "crashed", "left with exit status 3"),
        ("leaves", {"code": 0}, {}, "crashed", "left without an answer"),
        ("crashes", {}, {}, "killed", "was ended by SIGSEGV"),
        ("closes", {}, {"wall_s": 0.2}, "time", "took more than 0.2 s"),
        ("answers", {"kind": "list", "size": 0}, {}, "crashed", "an answer is an object"),
        ("answers", {"kind": "text", "size": 0}, {}, "crashed", "an answer is an object"),
        ("answers", {"kind": "text", "size": 5000}, {"answer_bytes": 999}, "crashed", "at most 999 are read"),
        ("nothing", {}, {}, "crashed", "AttributeError"),
    ],
)
def test_a_reply_says_why_there_is_no_answer(call, name, request_, limits, status, reason):
    reply = call(name, request_, **limits)
    assert reply.status == status
    assert reason in reply.reason


@LINUX
def test_files_in_memory_count_as_memory(call):
    reply = call("holds_a_file", memory_bytes=50 * MB)
    assert reply.status == "memory"


def test_memory_that_nobody_touches_is_free(call):
    reply = call("leaves_memory_alone", {"bytes": 20_000 * MB}, memory_bytes=100 * MB)
    assert reply.answer == {"bytes": 20_000 * MB}


def test_what_is_held_is_counted_beyond_what_the_process_was_forked_with(call):
    assert call("holds", {"pieces": 4, "seconds": 0.1}, memory_bytes=40 * MB).status == "ok"


def test_a_file_has_no_more_bytes_than_may_be_written(call):
    assert "File too large" in call("writes", {"pieces": 9}, written_bytes=5 * MB).reason


def test_what_a_child_prints_comes_with_the_reply_and_goes_nowhere_else(call, capfd):
    assert call("prints").output.splitlines() == ["and this", "to be read"]
    assert capfd.readouterr() == ("", "")


def test_nothing_that_a_child_starts_is_left(zygote, call):
    assert call("leaves_a_process").status == "ok"
    wait_until(lambda: len(family(zygote.process.pid)) <= 2)


def test_a_child_learns_nothing_of_variables(call, monkeypatch):
    assert "SECRET_TOKEN" not in call("told").answer["variables"]


@LINUX
def test_a_child_sees_its_own_processes_and_no_files_but_those_of_python(zygote, call, tmp_path):
    if not {"files", "processes"} <= set(zygote.kept_from):
        pytest.skip("this system forbids namespaces")
    task = tmp_path / "task.py"
    task.write_text("secret")
    of_python = sorted(
        {Path(p).parts[2] for p in (*python_folders(), CALLED) if Path(p).is_relative_to("/tmp")}
    )
    known = call("told", {"paths": [str(task), str(Path.home() / ".bashrc"), "/etc/shadow"]}).answer
    assert known["pids"] == ["1"]
    assert known["folders"]["/tmp"] == of_python
    assert known["seen"] == []
    assert call("writes", {"pieces": 1}).answer == {"folder": ["written"]}
    assert call("told").answer["folders"]["/tmp"] == of_python  # nobody finds what another one wrote


@LINUX
def test_a_folder_of_tmp_that_holds_packages_is_seen_there(tmp_path):
    """As a virtual environment in /tmp is."""
    (tmp_path / "a_module.py").write_text("FOUND = 1")
    away = [str(tmp_path / "a_module.py"), str(tmp_path.parent / "other")]
    with Zygote(folders=[CALLED, tmp_path]) as own:
        reply = own.call("process_functions:told", {"paths": away}, limits=Limits())
    assert reply.answer["seen"] == away[:1], reply.reason


@LINUX
def test_a_child_cannot_change_what_it_is_kept_from(zygote, call):
    if "files" not in zygote.kept_from:
        pytest.skip("this system forbids namespaces")
    assert call("mounts", {"path": os.path.__file__}).answer == {"refused": ["mount", "unshare", "write"]}


@LINUX
def test_a_child_reads_no_memory_of_others(zygote, call):
    if "system calls" not in zygote.kept_from:
        pytest.skip("this system takes no filter")
    assert call("reads_memory").answer == {"result": -1, "error": errno.EPERM}


WITHOUT_NAMESPACES = [
    ("echo", {"x": 1}, {}, ["ok", {"x": 1}]),
    ("sleeps", {"seconds": 60}, {"wall_s": 0.1}, ["time", "took more than 0.1 s"]),
    (
        *("holds", {"pieces": 99, "seconds": 60}, {"memory_bytes": 50 * MB}),
        ["memory", f"held more than {50 * MB} bytes of memory"],
    ),
    (
        *("starts_many", {}, {"processes": 4}),
        ["killed", "had more than 4 processes and threads at one time"],
    ),
    ("leaves_a_process", {}, {}, ["ok", {}]),
    ("dies", {"signal": signal.SIGKILL}, {}, ["killed", "was ended by SIGKILL"]),
    ("connects", {"port": 1}, {}, ["crashed", "PermissionError: [Errno 1] Operation not permitted"]),
    ("kills", {"pids": [1]}, {}, ["ok", {"refused": [1]}]),
]


@LINUX
def test_limits_hold_where_namespaces_are_forbidden(zygote, call):
    """A child can make none, so one that calls others is such a system."""
    if not {"files", "system calls"} <= set(zygote.kept_from):
        pytest.skip("this system forbids namespaces")
    asked = [x[:3] for x in WITHOUT_NAMESPACES]
    found = call("calls_without_namespaces", {"calls": asked}).answer
    assert found["kept_from"] == ["network", "system calls"]
    assert found["replies"] == [x[3] for x in WITHOUT_NAMESPACES]
    assert found["left"] == 1


@LINUX
def test_bubblewrap_does_it_where_it_must(monkeypatch, tmp_path):
    if not bubblewrap._succeeds([*bubblewrap.command(()), "true"]):
        pytest.skip("bubblewrap is not installed, or does not work here")
    monkeypatch.setattr(bubblewrap, "is_needed", lambda: True)
    with Zygote(folders=[CALLED]) as zygote:
        known = zygote.call(
            "process_functions:told", {"paths": [str(tmp_path), str(Path.home() / ".bashrc")]}
        )
        mine = str(os.getpid())
        assert {"files", "network"} <= set(zygote.kept_from)
        assert known.answer["seen"] == []
        assert mine not in known.answer["pids"]


@LINUX
def test_a_child_reaches_no_network(zygote, call):
    if "network" not in zygote.kept_from:
        pytest.skip("this system forbids namespaces")
    with socket.create_server(("127.0.0.1", 0)) as server:
        reply = call("connects", {"port": server.getsockname()[1]})
    assert reply.reason.startswith(("PermissionError", "OSError"))


def test_sets_have_one_order_in_every_process(call):
    assert "PYTHONHASHSEED" in call("told").answer["variables"]


def test_torch_is_imported_only_where_it_is_asked_for(call):
    assert "torch" not in call("told").answer["modules"]


@pytest.mark.parametrize(
    "wrong",
    [{"cpu_s": 0}, {"wall_s": float("inf")}, {"files": 1.5}, {"processes": True}, {"memory_bytes": "1"}],
)
def test_a_limit_is_a_number_above_0(wrong):
    with pytest.raises(UsageError, match=f"limit {next(iter(wrong))} must be"):
        Limits(**wrong)


@pytest.mark.parametrize("wrong", [{"cpu_s": 1e300}, {"wall_s": 10**9}, {"memory_bytes": 1 << 63}])
def test_a_limit_is_no_more_than_the_kernel_takes(wrong):
    with pytest.raises(UsageError, match=f"limit {next(iter(wrong))} must be at most"):
        Limits(**wrong)


def test_limits_are_the_same_after_json():
    limits = Limits(cpu_s=1.5, files=9)
    assert Limits.from_json(json.loads(json.dumps(limits.to_json()))) == limits
