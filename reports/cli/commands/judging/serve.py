"""`ascendtile serve`: the tools for agents over stdio, or for agents and programs over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from ...options import ONE_OBJECT, Decorator, at_most_one

if TYPE_CHECKING:
    import socket

    from ....judging.processes.limits import Limits
    from ....serving.server_settings import ServerSettings

NEEDED = ("mcp", "mcp_types", "starlette", "uvicorn", "jsonschema", "anyio")
MOST = 86_400.0  # seconds, and more GiB than there are
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _limit(name: str, usual: float, help: str) -> Decorator:
    """An option of a limit that is a number."""
    kind = click.FloatRange(0.1, MOST)
    return click.option(name, type=kind, default=usual, show_default=True, metavar="N", help=help)


@click.command()
@click.option(
    "--stdio", is_flag=True, help="The Model Context Protocol on standard input and output, for one agent."
)
@click.option(
    "--http",
    metavar="[HOST:]PORT",
    help="HTTP: /mcp for agents, /v1 for programs. HOST is 127.0.0.1; port 0 takes a free one.",
)
@click.option("--any-address", is_flag=True, help="Allow a HOST that other machines reach.")
@click.option(
    "--host-name", "host_names", multiple=True, metavar="NAME", help="A name of this server in Host headers."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="Where the token of HTTP is kept, with mode 600; made if it is not there. Without, one is made and printed.",
)
@click.option(
    "--slots", type=click.IntRange(1, 256), metavar="N", help="Requests at one time; without, the cores."
)
@click.option(
    "--queue",
    type=click.IntRange(0, 10_000),
    default=16,
    show_default=True,
    metavar="N",
    help="Requests that may wait; one more is told so.",
)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder whose files requests may name. Without, they bring texts.",
)
@click.option(
    "--torch/--no-torch", default=None, help="Whether workers have torch; without, where it is installed."
)
@_limit("--seconds", 120.0, "Seconds of each process of a request at most.")
@_limit("--cpu-seconds", 60.0, "Seconds of processor time of each process of a request.")
@_limit("--memory-gib", 8.0, "GiB of memory of each process of a request.")
@click.option("--skill", is_flag=True, help="Print the skill that teaches an agent the loop, and end.")
@click.option(
    "--json", "as_json", is_flag=True, help=f"{ONE_OBJECT} With --http: url and token, once it serves."
)
def command(**options: Any) -> None:
    """Serve tools for kernels over MCP or HTTP.

    Tools are run, judge, explain, explore, products and docs, for agents and programs.

    Each request is done in a process of its own with limits of time, memory, files and processes, without network and
    without your files where the system allows. Ctrl-C ends everything. Needs the extra: pip install 'ascendtile[serve]'.

    Example: ascendtile serve --http 8765 --token-file ~/.ascendtile-token
    """
    asked = SimpleNamespace(**options)
    ways = {"--stdio": asked.stdio, "--http": asked.http, "--skill": asked.skill}
    chosen = at_most_one(ways, "exclude each other")
    if not chosen:
        raise click.UsageError("give --stdio, --http PORT or --skill")
    asked.limits = _limits(asked)
    _check(asked, chosen[0])
    if asked.skill:
        _skill()
    elif asked.http:
        _http(asked)
    else:
        _stdio(asked)


def _check(asked: SimpleNamespace, way: str) -> None:
    """What only HTTP has is for HTTP, and the extra is there."""
    of_http = {
        "--token-file": asked.token_file,
        "--any-address": asked.any_address,
        "--host-name": asked.host_names,
        "--json": asked.as_json,
    }
    for flag in (flag for flag, given in of_http.items() if given and way != "--http"):
        raise click.UsageError(f"{flag} is for --http; leave it out with {way}")
    from importlib.util import find_spec

    if way == "--skill":
        return
    for name, extra in (*((n, "serve") for n in NEEDED), *([("torch", "torch")] if asked.torch else [])):
        if find_spec(name) is None:
            raise click.UsageError(
                f"serving needs {name}, which is not installed: pip install 'ascendtile[{extra}]'"
            )


def _skill() -> None:
    from ....serving.instructions import skill

    click.echo(skill(), nl=False)


def _limits(asked: SimpleNamespace) -> Limits:
    """Of each process of a request; refused here, where numbers are none."""
    from ....judging.processes.limits import GiB, Limits

    return Limits(cpu_s=asked.cpu_seconds, wall_s=asked.seconds, memory_bytes=int(asked.memory_gib * GiB))


def _settings(asked: SimpleNamespace) -> ServerSettings:
    from ....serving.server_settings import ServerSettings

    return ServerSettings(asked.slots, asked.queue, asked.torch, asked.root, asked.limits)


def _stdio(asked: SimpleNamespace) -> None:
    from ....serving.running import serve_stdio

    serve_stdio(_settings(asked))


def _http(asked: SimpleNamespace) -> None:
    from ....serving import tokens
    from ....serving.admission import Admission
    from ....serving.running import listening, serve_http

    host, port = _address(asked.http)
    beyond = host not in LOOPBACK
    if beyond and not asked.any_address:
        raise click.UsageError(
            f"--http {asked.http}: other machines reach {host}, and whoever has the token runs code here; "
            "take 127.0.0.1, or add --any-address if that is wanted"
        )
    token = tokens.token_of(asked.token_file) if asked.token_file else tokens.new_token()
    sock = listening(host, port)
    access = Admission(token, tuple(n.lower() for n in asked.host_names), addresses=beyond)
    serve_http(_settings(asked), access, sock, lambda: _tell(asked, host, token, sock))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise click.BadParameter(f"--http takes PORT or HOST:PORT with a port of 0 to 65535, got {text!r}")
    return host.strip("[]") or LOOPBACK[0], int(port)


def _tell(asked: SimpleNamespace, host: str, token: str, sock: socket.socket) -> None:
    """Where it serves; the token if nothing else keeps it."""
    from ....terminal.console import note, show_json

    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{sock.getsockname()[1]}"
    kept = {"token_file": str(asked.token_file)} if asked.token_file else {"token": token}
    if asked.as_json:
        show_json({"url": url, "mcp": f"{url}/mcp", **kept})
        sys.stdout.flush()
        return
    note(f"serving {url}/v1 for programs, {url}/mcp for agents; Ctrl-C ends it")
    note(f"token in {asked.token_file}" if asked.token_file else f"token: {token}")
    if asked.any_address:
        note("other machines may reach it: whoever has the token runs code here, in worker processes")
