"""The reader of README files, and what it refuses: a block that is not run has to say why."""

import pytest

from .markdown import Block, commands, read
from .renew import renewed
from .running import Runner, first_difference


@pytest.fixture
def blocks(tmp_path):
    def of(text):
        path = tmp_path / "README.md"
        path.write_text(text)
        return read(path)

    return of


def test_blocks_come_in_order_with_the_marks_before_them(blocks):
    found = blocks(
        "# A\n\n```sh\nls\n```\n<!-- needs: torch -->\n<!-- file: a.py -->\n```python\nx = 1\n```\n\n| a |\n|--|\n| 1 |\n"
    )
    assert [b.kind for b in found] == ["sh", "python", "table"]
    assert [b.marks for b in found] == [{}, {"needs": "torch", "file": "a.py"}, {}]
    assert (found[1].line, found[1].text) == (9, "x = 1\n")


@pytest.mark.parametrize(
    "text",
    [
        "```\nls\n```\n",
        "```ruby\n1\n```\n",
        "```csv\na,b\n```\n",
        "```sh\nls\n",
        "<!-- skip: too hard -->\n```sh\nls\n```\n",
        "<!-- later: yes -->\n```sh\nls\n```\n",
        "<!-- needs: torch -->\nsome text\n",
    ],
)
def test_what_nobody_would_run_is_refused(blocks, text):
    with pytest.raises(ValueError, match=r"line [12]:"):
        blocks(text)


def test_commands_with_and_without_what_they_print():
    sh = Block("sh", ("a b \\", "  c   # why", "", "# no command", "d"), 1, {})
    assert [c for c, _ in commands(sh)] == ["a b    c   # why", "d"]
    console = Block("console", ("$ a", "1", "2", "$ b"), 1, {})
    assert list(commands(console)) == [("a", ["1", "2"]), ("b", [])]


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "..."], ["a", "b"], True),
        (["a", "...", "d"], ["a", "b", "c", "d"], True),
        (["a", "...", "e"], ["a", "b", "c", "d"], False),
        (["a", "b"], ["a"], False),
        (["a 1.0"], ["a 1.1"], False),
    ],
)
def test_what_is_printed_is_compared_to_the_letter(expected, printed, same):
    assert (first_difference(expected, printed) is None) is same


@pytest.mark.parametrize(
    "text",
    [
        "```sh\nascendtile ops no_such_operator\n```\n",
        "```sh\nfalse | true\n```\n",
        "```console\n$ echo 1\n2\n```\n",
        "```python\nassert y == 2\n```\n",
        "| us |\n|--|\n| 12 |\n",
        "<!-- checked: products -->\n| a | b | c | d | e |\n|-|-|-|-|-|\n| ascend910b3 | A2 | 1 | 2 MHz | 3 KiB |\n",
    ],
)
def test_a_block_that_does_not_hold_fails(blocks, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, NameError)):
        Runner(tmp_path, long=False).run(blocks(text)[0])


def test_figures_of_the_host_may_differ_where_it_is_said(blocks, tmp_path):
    block = blocks(
        "<!-- varies: host time -->\n```console\n$ echo took 1.5 s for 3 rows\ntook 99 s for 3 rows\n```\n"
    )[0]
    Runner(tmp_path, long=False).run(block)


def test_an_extra_that_is_not_there_skips_its_block(blocks, tmp_path):
    with pytest.raises(pytest.skip.Exception, match="needs no_such_module"):
        Runner(tmp_path, long=False).run(blocks("<!-- needs: no_such_module -->\n```sh\nfalse\n```\n")[0])


def test_renewed_output_is_cut_where_the_page_cuts_it():
    shown = ["time 1.5 us", "...", "bound  3 %", "..."]
    printed = ["time 12.5 us", "code", "bound 4.25 %", "end"]
    assert renewed(shown, printed) == ["time 12.5 us", "...", "bound 4.25 %", "..."]
    assert renewed(["a"], printed) == printed
    for gone in (["other 1", "..."], ["time 1.5 us", "bound 3 %", "..."]):
        with pytest.raises(ValueError, match=r"no longer printed|came or went"):
            renewed(gone, printed)
