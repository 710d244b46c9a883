"""Who may ask over HTTP: one header wrong and the request is refused, whatever the others say."""

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.reports.serving.admission import Admission
from ascendtile.reports.serving.server_settings import MOST_BODY
from ascendtile.reports.serving.tokens import LEAST, new_token, token_of
from ascendtile.simulator.errors import UsageError

TOKEN = "a-token-of-16-or-more"
ACCESS = Admission(TOKEN)
RIGHT = {"host": "127.0.0.1:80", "authorization": f"Bearer {TOKEN}"}


def status(access=ACCESS, **headers):
    """The status of a refusal, None of none. A header of None is left out."""
    sent = [(k.replace("_", "-").encode(), v.encode()) for k, v in (RIGHT | headers).items() if v is not None]
    found = access.problem(sent)
    return found and found[0]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8765", "localhost:1", "LOCALHOST", "[::1]:80", "[::1]"]
)
def test_every_name_of_the_loopback_is_ours(host):
    assert status(host=host) is None
    assert status(origin=f"http://{host}") is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:127",
        "localhost.evil",
        "1.2.3.4",
        "x@localhost",
    ],
)
def test_another_name_may_be_one_that_was_made_to_mean_this_machine(host):
    assert status(host=host) == 421


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "https://127.0.0.1.evil.example", "file://", ""]
)
def test_a_page_of_another_site_may_not_ask(origin):
    assert status(origin=origin) == 403


@pytest.mark.parametrize(
    "shown",
    [
        None,
        "",
        TOKEN,
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer ä",
    ],
)
def test_without_the_token_nothing_is_done(shown):
    assert status(authorization=shown) == 401


@given(st.text(max_size=30))
def test_no_other_text_is_the_token(text):
    assert status(authorization=f"Bearer {text}") == (None if text.strip() == TOKEN else 401)


def test_a_body_is_bounded_by_what_it_says_of_itself():
    assert status(content_length=str(MOST_BODY)) is None
    assert status(content_length=str(MOST_BODY + 1)) == 413
    assert status(content_length="-1") == status(content_length="x") == 400


@pytest.mark.parametrize("name", ["host", "origin", "authorization"])
def test_a_header_that_is_there_twice_says_nothing(name):
    twice = [(n.encode(), v.encode()) for n, v in RIGHT.items()] + [(name.encode(), b"127.0.0.1")] * 2
    assert ACCESS.problem(twice) == (400, f"the header {name} is given twice")


def test_beyond_the_loopback_any_address_and_given_names_are_ours():
    beyond = Admission(TOKEN, ("board.lan",), addresses=True)
    assert status(beyond, host="192.168.0.7:80") is status(beyond, host="board.lan:80") is None
    assert status(beyond, host="[fe80::1]:80") is None
    assert status(beyond, host="evil.example") == 421
    assert status(host="board.lan") == 421


# ---- the token's file ----


def test_a_new_file_is_for_its_owner_only_and_keeps_its_token(tmp_path):
    path = tmp_path / "token"
    before = os.umask(0)
    try:
        token = token_of(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token_of(path) == token == path.read_text().strip()
    assert len(token) >= 43
    assert new_token() != new_token()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path, mode):
    path = tmp_path / "token"
    token_of(path)
    path.chmod(mode)
    with pytest.raises(UsageError, match=f"mode {mode:o}.*chmod 600"):
        token_of(path)


@pytest.mark.parametrize("text", ["", "short", "two words in it, too", "x" * (LEAST - 1), "a\x01" * 20])
def test_a_file_without_a_token_is_refused(tmp_path, text):
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(UsageError, match="--token-file"):
        token_of(path)


def test_a_place_that_cannot_be_written_or_is_no_file_is_told(tmp_path):
    for path in (tmp_path / "no" / "token", tmp_path):
        with pytest.raises(UsageError, match="--token-file"):
            token_of(path)
