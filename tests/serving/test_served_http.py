"""The server over HTTP, as its clients find it: plain programs, curl, and the official client of the SDK."""

import json
import os
import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from ascendtile.reports.serving.statuses import STATUS, kind_of
from ascendtile.reports.serving.tools.catalogue import TOOLS

from .conftest import WAIT_SECONDS, descendants, gone
from .tasks import ANSWER, TASK

pytestmark = pytest.mark.extra("mcp")
TINY = {"op": "rms_norm_grad", "case": "tiny"}
FOREVER = {"script": "while True: pass"}


@pytest.fixture(scope="module")
def served(start):
    return start("--no-torch", "--slots", "2", "--queue", "2", "--seconds", "60", "--memory-gib", "0.5")


def test_a_request_gives_the_same_answer_every_time(served):
    first, *others = (served.ask("run", TINY) for _ in range(4))
    assert first[0] == 200
    assert first[1]["time_us"] > 0
    assert all(other == first for other in others)


def test_tools_and_schemas_are_listed(served):
    tools = served.fetch("/v1/tools")[1]["tools"]
    assert [t["name"] for t in tools] == list(TOOLS)
    openapi = served.fetch("/v1/schema")[1]
    assert openapi["openapi"] == "3.1.0"
    assert set(openapi["paths"]) == {f"/v1/{name}" for name in TOOLS}


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/v1/health", None, {"Authorization": "Bearer no"}, 401),
        ("/v1/run", b"{}", {"Authorization": ""}, 401),
        ("/mcp", b"{}", {"Authorization": ""}, 401),
        ("/v1/health", None, {"Host": "evil.example"}, 421),
        ("/v1/run", b"{}", {"Origin": "http://evil.example"}, 403),
        ("/mcp", b"{}", {"Origin": "http://evil.example"}, 403),
        ("/v1/nothing", b"{}", {}, 404),
        ("/etc/passwd", None, {}, 404),
        ("/v1/run", None, {}, 404),
        ("/v1/run", b"{}", {"Content-Type": "text/plain"}, 415),
        ("/v1/run", b"op=x", {}, 400),
        ("/v1/run", b"[" * 100_000, {}, 400),
        ("/v1/run", b"[1]", {}, 400),
        ("/v1/run", b'{"op": "matmul", "op": "rms_norm_grad"}', {}, 400),
        ("/v1/run", b'{"op": "matmul", "sizes": {"m": 1, "m": 2}}', {}, 400),
        ("/v1/run", b"{}", {}, 400),
        ("/v1/run", b'{"op": "matmul", "nothing": 1}', {}, 400),
        ("/v1/run", b'{"path": "/etc/passwd"}', {}, 400),
        ("/v1/run", b" " * (9 << 20), {}, 413),
        ("/v1/run/", b"{}", {}, 404),
    ],
)
def test_what_is_refused_says_why_and_the_next_request_is_done(served, path, body, headers, status):
    found = served.fetch(path, body, **headers)
    assert found[0] == status
    assert found[1]["error"]["kind"] == kind_of(status)
    assert len(found[1]["error"]["message"]) > 10
    assert served.fetch("/v1/health")[0] == 200


def test_an_answer_is_explained_by_its_dearest_launch(served):
    status, found = served.ask("explain", {"task": TASK, "answer": ANSWER})
    assert (status, found["verdict"], found["dearest"]["kernel"]) == (200, "timed", "relu")
    assert found["dearest"]["lifted_us"].keys() >= {"launch"}
    assert found["dearest"]["changes_us"]
    for wrong in ({"task": TASK}, {"task": TASK, "answer": ANSWER, "case": "tiny"}, {"answer": ANSWER}):
        assert served.ask("explain", wrong)[0] == 400


def test_an_agent_of_an_older_protocol_that_is_gone_ends_its_work(served):
    """There a request belongs to a session, which outlives the connection."""
    shown = {"Accept": "application/json, text/event-stream"}
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    begun = post(served, message, "/mcp", **shown)
    session = re.search(rb"(?i)mcp-session-id: (\w+)", begun.recv(1 << 16))[1].decode()
    called = {"method": "tools/call", "params": {"name": "run", "arguments": FOREVER}}
    asked = post(served, {**message, **called, "id": 2}, "/mcp", **shown, **{"Mcp-Session-Id": session})
    served.eventually("it runs", running=1)
    for connection in (begun, asked):
        connection.close()
    served.eventually("it has gone", running=0)


def test_every_kind_of_error_has_a_status():
    assert all(400 <= status < 600 for status in STATUS.values())
    assert {
        "usage",
        "failed",
        "fault",
        "memory",
        "time",
        "killed",
        "crashed",
        "full",
        "closing",
    } <= STATUS.keys()


def test_a_request_beyond_its_memory_is_ended_and_says_so(served):
    status, answer = served.ask("run", {"script": "x = bytearray(700 << 20)\nwhile True: pass"})
    assert (status, answer["error"]["kind"]) == (507, "memory")


def test_what_runs_sees_neither_network_nor_the_users_files(served):
    kept_from = served.fetch("/v1/health")[1]["kept_from"]
    if "files" not in kept_from:
        pytest.skip(f"this system keeps workers from {kept_from}")
    script = (
        f"import os\nprint(os.path.exists({str(served.folder)!r}), os.path.exists({os.getcwd()!r} + '/.git'))"
    )
    assert served.ask("run", {"script": script})[1]["output"] == "False False\n"
    found = served.ask("run", {"script": "import socket\nsocket.create_connection(('127.0.0.1', 1), 5)"})[1]
    assert found["error"].startswith(("OSError", "PermissionError"))


def test_a_full_queue_says_when_to_come_again_and_whoever_goes_away_ends_the_work(served):
    with ThreadPoolExecutor(5) as threads:
        connections = [post(served, FOREVER) for _ in range(4)]
        served.eventually("two run, two wait", running=2, waiting=2)
        status, answer = threads.submit(served.ask, "run", TINY).result(WAIT_SECONDS)
        assert (status, answer["error"]["kind"]) == (429, "full")
        assert "2 waiting, at most 2" in answer["error"]["message"]
        for connection in connections:
            connection.close()
        served.eventually("all have gone", running=0, waiting=0)
    assert served.ask("run", TINY)[0] == 200


def post(served, body, path="/v1/run", **headers):
    """A connection with a request on its way."""
    host, port = served.url.removeprefix("http://").split(":")
    text = json.dumps(body)
    usual = {
        "Host": f"{host}:{port}",
        "Authorization": f"Bearer {served.token}",
        "Content-Type": "application/json",
    }
    head = "".join(f"{n}: {x}\r\n" for n, x in (usual | headers | {"Content-Length": str(len(text))}).items())
    connection = socket.create_connection((host, int(port)))
    connection.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n{text}".encode())
    return connection


def told(open_to):
    from ascendtile.reports.serving.running import UNKEPT

    return f"ascendtile serve: {UNKEPT.format(' and '.join(open_to))}"


def test_a_system_that_keeps_workers_from_little_is_told(monkeypatch, capsys):
    from ascendtile.reports.serving import running

    class Ran:
        def __init__(self, target, daemon):
            self.start = target

    monkeypatch.setattr(running.threading, "Thread", Ran)
    for kept, lacking in (
        (("files", "network", "processes"), []),
        ((), ["network", "files"]),
        (("network",), ["files"]),
    ):
        running._warm(SimpleNamespace(warm=lambda kept=kept: kept))
        assert capsys.readouterr().err == (f"{told(lacking)}\n" if lacking else "")


def test_the_process_that_workers_are_forked_from_is_replaced(served):
    assert served.ask("run", TINY)[0] == 200
    for pid in descendants(served.process.pid):
        os.kill(pid, signal.SIGKILL)
    assert served.ask("run", TINY)[0] == 200


@pytest.mark.parametrize(
    "stop",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive)],
    ids=["ctrl-c", "sigterm"],
)
def test_a_server_that_is_told_to_stop_answers_and_leaves_nothing(start, stop):
    ending = start("--no-torch", "--slots", "1")
    assert ending.ask("run", TINY)[0] == 200
    kept_from = ending.fetch("/v1/health")[1]["kept_from"]
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(ending.ask, "run", FOREVER)
        ending.eventually("it runs", running=1)
        below = descendants(ending.process.pid)
        assert below
        ending.process.send_signal(stop)
        assert asked.result(WAIT_SECONDS)[0] == 503
    assert ending.process.wait(WAIT_SECONDS) == 0
    assert not gone(below)
    open_to = [x for x in ("network", "files") if x not in kept_from]
    assert (ending.folder / "errors").read_text() == (f"{told(open_to)}\n" if open_to else "")
    assert [p.name for p in ending.folder.iterdir()] == ["errors"]
