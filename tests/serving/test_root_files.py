"""Files that a request names: what lies below the folder of --root, whatever the path says, and nothing else."""

import contextlib
import os
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.reports.serving.root_files import inside, resolved
from ascendtile.reports.serving.tools.catalogue import TOOLS
from ascendtile.reports.serving.tools.tool import MOST_TEXT
from ascendtile.simulator.errors import UsageError

JUDGE, RUN = TOOLS["judge"], TOOLS["run"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with files, beside one that is nobody's business, with links that lead there."""
    base = tmp_path_factory.mktemp("files")
    folder = base / "root"
    (folder / "a").mkdir(parents=True)
    (base / "secret.py").write_text("secret")
    (folder / "a" / "task.py").write_text("task")
    (folder / "a" / "task.jsonl").write_text("{}")
    (folder / "a" / "answer.py").write_text("answer")
    (folder / "out.py").symlink_to(base / "secret.py")
    (folder / "up").symlink_to(base)
    (folder / "in.py").symlink_to(folder / "a" / "task.py")
    return folder


def refusal(root, tool=RUN, **arguments):
    with pytest.raises(UsageError) as caught:
        resolved(tool, arguments, root)
    return str(caught.value)


def test_paths_become_texts_and_cases_beside_a_task_come_along(root):
    found = resolved(JUDGE, {"task_path": "a/task.py", "answer_path": "a/answer.py", "seed": 1}, root)
    assert found == {"task": "task", "answer": "answer", "files": {"task.jsonl": "{}"}, "seed": 1}


def test_a_file_that_the_client_sends_comes_before_one_beside_the_task(root):
    given = {"task_path": "a/task.py", "answer": "x", "files": {"task.jsonl": "mine"}}
    assert resolved(JUDGE, given, root)["files"] == {"task.jsonl": "mine"}


def test_an_absolute_path_and_a_link_inside_are_taken(root):
    assert resolved(RUN, {"path": str(root / "a" / "task.py")}, root) == {"script": "task"}
    assert resolved(RUN, {"path": "in.py"}, root) == {"script": "task"}


@pytest.mark.parametrize(
    "path",
    [
        "../secret.py",
        "out.py",
        "up/secret.py",
        "a/../../secret.py",
        "/etc/passwd",
        "a",
        "",
        ".",
        "no.py",
        "\0",
        "a" * 5000,
    ],
)
def test_nothing_outside_of_the_folder_is_read_and_whether_it_is_there_is_not_told(root, path):
    message = refusal(root, path=path)
    assert "secret\n" not in message
    assert "in the folder of --root" in message


@given(
    st.lists(st.sampled_from(["..", "a", "up", "out.py", "task.py", "secret.py", ".", "/", "~"]), max_size=6)
)
def test_whatever_the_parts_a_path_ends_inside_or_is_refused(root, parts):
    try:
        found = inside(root, "/".join(parts), "path")
    except UsageError:
        return
    assert found.is_relative_to(root.resolve())
    assert found.read_text() != "secret"


@given(st.text(string.printable + "äß\0\ud800", max_size=40))
def test_whatever_the_text_a_path_ends_inside_or_is_refused(root, text):
    with contextlib.suppress(UsageError):
        assert inside(root, text, "path").is_relative_to(root.resolve())


def test_without_a_folder_no_file_is_read(root):
    assert "--root" in refusal(None, path=str(root / "in.py"))


def test_a_path_and_a_text_for_one_file_are_too_much(root):
    assert "two ways" in refusal(root, path="in.py", script="x")


def test_a_file_that_is_too_large_or_no_text_is_refused(root):
    (root / "large.py").write_bytes(b"#" * (MOST_TEXT + 1))
    (root / "bytes.py").write_bytes(b"\xff\xfe")
    assert f"at most {MOST_TEXT}" in refusal(root, path="large.py")
    assert "cannot read bytes.py" in refusal(root, path="bytes.py")
    os.mkfifo(root / "pipe.py")
    assert "is no file" in refusal(root, path="pipe.py")
