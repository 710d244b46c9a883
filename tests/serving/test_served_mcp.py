"""The server for agents, asked by the official client of the SDK, over stdio and over HTTP."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import ascendtile.reports.serving
from ascendtile.reports.serving.tools.catalogue import TOOLS

from ..readme.markdown import read
from .conftest import COMMAND, WAIT_SECONDS, descendants, gone

pytestmark = pytest.mark.extra("mcp")
TINY = {"op": "rms_norm_grad", "case": "tiny"}
PAGE = Path(ascendtile.reports.serving.__path__[0]) / "README.md"
OPTIONS = ("--no-torch", "--slots", "1")


@pytest.fixture(scope="module")
def served(start):
    return start("--no-torch", "--slots", "1")


def over_stdio():
    from mcp.client.stdio import StdioServerParameters, stdio_client

    page = next(
        b for b in read(PAGE) if b.marks.get("file") == "mcp.json"
    )  # what the page tells users to write
    given = json.loads(page.text)["mcpServers"]["ascendtile"]
    assert given["command"] == "ascendtile"
    return stdio_client(StdioServerParameters(command=COMMAND, args=[*given["args"], *OPTIONS]))


def over_http(served):
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    shown = httpx2.AsyncClient(headers={"Authorization": f"Bearer {served.token}"}, timeout=WAIT_SECONDS)
    return streamable_http_client(f"{served.url}/mcp", http_client=shown)


def talk(transport, what):
    """Run `what(client)` in a session."""
    from mcp.client.client import Client

    async def session():
        async with Client(transport) as client:
            return await what(client)

    return asyncio.run(session())


async def conversation(client):
    """What an agent does: looks what there is, asks, errs, asks for too much, goes on."""
    import anyio

    told = []

    async def progress(done, total, message):
        told.append(message)

    tools = (await client.list_tools()).tools
    right = await client.call_tool("run", TINY)
    slow = await client.call_tool("run", {"script": "import time\ntime.sleep(5)"}, progress_callback=progress)
    wrong = [
        await client.call_tool(name, given)
        for name, given in (("run", {}), ("nothing", {}), ("run", {"op": 1}))
    ]
    with anyio.move_on_after(1) as patience:
        await client.call_tool("run", {"script": "while True: pass"})
    after = await client.call_tool("run", TINY)  # the only slot is free again
    return client.instructions, tools, right, slow, told, wrong, patience.cancelled_caught, after


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_an_agent_finds_its_tools_is_told_errors_and_can_give_up(way, request):
    transport = over_stdio() if way == "stdio" else over_http(request.getfixturevalue("served"))
    instructions, tools, right, slow, told, wrong, gave_up, after = talk(transport, conversation)
    assert "judge" in instructions
    assert [(t.name, t.input_schema) for t in tools] == [(t.name, t.schema) for t in TOOLS.values()]
    assert not right.is_error
    assert json.loads(right.content[0].text) == right.structured_content
    assert right.structured_content == after.structured_content
    assert "running" in told
    assert slow.structured_content["status"] == 0
    assert all(r.is_error and r.structured_content["error"]["kind"] == "usage" for r in wrong)
    assert gave_up


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer no"}])
def test_without_the_token_no_session_begins(served, header):
    status, answer = served.fetch("/mcp", b"{}", **{"Authorization": "", **header})
    assert (status, answer["error"]["kind"]) == (401, "refused")


@pytest.fixture
def alone(tmp_path):
    """A server over stdio whose streams are ours."""
    process = subprocess.Popen(
        [COMMAND, "serve", "--stdio", *OPTIONS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    yield process
    process.kill()
    process.wait()
    for stream in (process.stdout, process.stderr):
        stream.close()
    with contextlib.suppress(OSError):  # what was written and never read
        process.stdin.close()


def begin(process):
    """Say hello, wait for the answer; the processes below it then."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    send(process, "initialize", hello)
    assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "ascendtile"
    process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    send(process, "tools/call", {"name": "products", "arguments": {}})
    assert json.loads(process.stdout.readline())["result"]["isError"] is False
    return descendants(process.pid)


def send(process, method, params):
    process.stdin.write(
        json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n"
    )
    process.stdin.flush()


@pytest.mark.parametrize(
    "end", ["input", *(pytest.param(s, marks=pytest.mark.exhaustive) for s in ("ctrl-c", "sigterm"))]
)
def test_the_end_of_the_input_or_a_signal_leaves_nothing(alone, tmp_path, end):
    below = begin(alone)
    assert below
    send(alone, "tools/call", {"name": "run", "arguments": {"script": "while True: pass"}})
    if end == "input":
        alone.stdin.close()
    else:
        alone.send_signal(signal.SIGINT if end == "ctrl-c" else signal.SIGTERM)
    assert alone.wait(WAIT_SECONDS) == 0
    assert not gone(below)
    assert list(tmp_path.iterdir()) == []
    assert b"Traceback" not in alone.stderr.read()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("way", "status", "said"),
    [
        ("--stdio <&-", 2, "standard input and output, and one of them is closed"),
        ("--stdio < lines | true; exit ${PIPESTATUS[0]}", 0, ""),
        ("--http 0 --json > /dev/full", 2, "No space left on device"),
    ],
)
def test_a_server_whom_nobody_hears_ends_and_leaves_nothing(tmp_path, way, status, said):
    (tmp_path / "lines").write_text("no message\n" * 1000)
    (tmp_path / "t").mkdir()
    done = subprocess.run(
        ["bash", "-c", f"{COMMAND} serve --no-torch --slots 1 {way}"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "t")},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (status, True, False)
    assert bool(said) or not done.stderr
    assert list((tmp_path / "t").iterdir()) == []


def test_lines_that_are_no_messages_are_answered_and_nothing_but_messages_is_printed(alone):
    alone.stdin.write(b"hello\n\xff\xfe\n\n{}\n[]\n")
    alone.stdin.flush()
    errors = [json.loads(alone.stdout.readline()) for _ in range(5)]
    assert all((e["jsonrpc"], e["id"]) == ("2.0", None) for e in errors)
    assert [e["error"]["code"] for e in errors] == [-32700] * 3 + [-32600] * 2
    begin(alone)
    script = "print('x')\nimport os\nos.system('echo y')"
    send(alone, "tools/call", {"name": "run", "arguments": {"script": script}})
    assert json.loads(alone.stdout.readline())["result"]["structuredContent"]["output"] == "x\n"
