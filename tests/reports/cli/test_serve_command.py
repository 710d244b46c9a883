"""`ascendtile serve` on the command line: what is refused before anything is served."""

import importlib.util
import socket
import stat

import pytest

NONE_LACKING = pytest.mark.extra("mcp")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give --stdio, --http PORT or --skill"),
        (("--stdio", "--http", "1"), "--stdio and --http exclude each other"),
        (("--stdio", "--token-file", "x"), "--token-file is for --http"),
        (("--stdio", "--json"), "--json is for --http"),
        (("--skill", "--host-name", "x"), "--host-name is for --http"),
        (("--stdio", "--slots", "0"), "0 is not in the range"),
        (("--stdio", "--root", "no-such-folder"), "no-such-folder"),
        (("--stdio", "--seconds", "nan"), "nan"),
        (("--stdio", "--memory-gib", "inf"), "inf"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(refused, words, message):
    assert message in refused("serve", *words)


@NONE_LACKING
@pytest.mark.parametrize("address", ["x", "", "127.0.0.1", "1:2:x", "65536", "-1", "127.0.0.1:٣"])
def test_an_address_needs_a_port(refused, address):
    assert "PORT" in refused("serve", "--http", address)


@NONE_LACKING
@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "[::]", "example.org"])
def test_an_address_that_others_reach_is_served_on_demand_only(refused, host):
    message = refused("serve", "--http", f"{host}:0")
    assert "other machines reach" in message
    assert "--any-address" in message


@NONE_LACKING
def test_a_port_that_is_taken_is_wrong_usage(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1 port {port}" in refused("serve", "--http", str(port))


@NONE_LACKING
def test_a_token_that_others_can_read_is_not_used(refused, tmp_path):
    path = tmp_path / "token"
    path.write_text("a-token-of-16-or-more")
    path.chmod(0o644)
    assert f"chmod 600 {path}" in refused("serve", "--http", "0", "--token-file", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_without_the_extra_it_says_what_to_install(refused, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *a: None if n == "mcp" else found(n, *a))
    assert "pip install 'ascendtile[serve]'" in refused("serve", "--stdio")


def test_the_skill_needs_no_extra(ascendtile):
    answer = ascendtile("serve", "--skill")
    assert answer.status == 0
    assert answer.out.startswith("---\nname: ")
