"""Tools as plain functions: the same figures as the command line, and every wrong request told in words."""

import json
import re

import pytest

from ascendtile.reports.cli.main import status_of
from ascendtile.reports.serving.tools.catalogue import TOOLS, work
from ascendtile.reports.serving.tools.docs import PAGE
from ascendtile.reports.serving.tools.output import Tail
from ascendtile.reports.serving.tools.tool import Tool

from .tasks import SCRIPT

TINY = {"op": "rms_norm_grad", "case": "tiny"}
BIG = {"op": "rms_norm_grad", "case": "llama3-8b", "tiling": {"rows": 64}, "values": False}


def ask(tool, /, **arguments):
    """The result; no text or number of it is one that JSON lacks."""
    answer = work({"tool": tool, "arguments": arguments}, {})
    return json.loads(json.dumps(answer, allow_nan=False))["result"]


def refusal(tool, /, **arguments):
    error = work({"tool": tool, "arguments": arguments}, {})["error"]
    assert error["kind"] == "usage"
    return error["message"]


def command_line(capsys, *words):
    capsys.readouterr()
    assert status_of(words) == 0
    return json.loads(capsys.readouterr().out)


# ---- what a tool is ----


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_a_schema_is_an_object_that_takes_no_other_argument_and_describes_each(tool):
    schema = tool.schema
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert not {"oneOf", "anyOf", "allOf", "not", "$ref"} & schema.keys()  # models' interfaces refuse these
    assert all(len(p["description"]) > 10 for p in schema["properties"].values())
    assert set(schema.get("required", ())) <= schema["properties"].keys()


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_what_a_client_sends_is_bounded(tool):
    for name, body in places(tool.schema):
        kinds = body.get("type", ())
        kinds = {kinds} if isinstance(kinds, str) else set(kinds)
        bounded = "maxLength" in body or "enum" in body or "pattern" in body
        assert bounded or not kinds & {"string"}, name
        assert "maxItems" in body or "array" not in kinds, name
        assert "maxProperties" in body or "object" not in kinds or name == "", name
        assert "maximum" in body or "integer" not in kinds or "string" in kinds, name


def places(schema, name=""):
    """Every schema inside of a schema."""
    yield name, schema
    inner = {
        **schema.get("properties", {}),
        "[]": schema.get("items"),
        "{}": schema.get("additionalProperties"),
    }
    for key, body in inner.items():
        if isinstance(body, dict):
            yield from places(body, f"{name}.{key}")


def test_a_path_stands_for_a_text_that_the_tool_takes():
    for tool in TOOLS.values():
        for path, text in (tool.paths or {}).items():
            assert {path, text} <= tool.properties.keys()


# ---- the same as the command line ----


def test_an_operator_gives_the_json_of_the_command(capsys):
    words = ("--size", "rows=8", "cols=64", "--dtype", "bfloat16", "--json")
    shown = command_line(capsys, "run", "rms_norm_grad", *words)
    assert ask("run", op="rms_norm_grad", sizes={"rows": 8, "cols": 64}, dtype="bfloat16") == shown


def test_a_script_gives_the_json_of_the_command_and_what_it_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    shown = command_line(capsys, "run", "--json", "script.py", "a", "b")
    found = ask("run", script=SCRIPT, arguments=["a", "b"])
    assert found.pop("output") == "['a', 'b'] 200.0\n"
    assert found == shown


def test_products_are_those_of_the_command(capsys):
    assert ask("products") == command_line(capsys, "products", "--json")
    assert ask("products", name="ascend910b3", assumed=True) == command_line(
        capsys, "products", "ascend910b3", "--assumed", "--json"
    )


def test_an_exploration_is_that_of_the_command(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = ("matmul", "--case", "tiny", "--dtype", "float16", "--budget", "3", "--json")
    shown = command_line(capsys, "explore", *words)
    found = ask("explore", op="matmul", case="tiny", dtype="float16", budget=3)
    assert found.pop("notes") is not None
    assert {**found, "seconds": 0} == {**shown, "seconds": 0}


# ---- scripts ----


def test_a_script_that_fails_says_why_and_where():
    found = ask("run", script="def f():\n    return 1 / 0\nf()\n")
    assert (found["status"], found["error"]) == (1, "ZeroDivisionError: division by zero")
    assert 'File "script.py", line 2' in found["output"]


def test_a_kernel_that_does_not_fit_names_a_block_that_does():
    found = ask("run", script=SCRIPT.replace("BLOCK=64", "BLOCK=1048576"))
    assert found["status"] == 1
    assert "ub overflow, requires" in found["error"]
    assert re.search(r"fits: BLOCK = \d+", found["error"])


def test_files_beside_a_script_can_be_imported():
    found = ask("run", script="import helper\nprint(helper.X)", files={"helper.py": "X = 5"})
    assert found["output"] == "5\n"


def test_a_request_leaves_folder_and_working_directory_as_they_were(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = ask("run", script="import os\nopen('left', 'w').close()\nprint(os.listdir('.'))")
    assert "left" in found["output"]
    assert list(tmp_path.iterdir()) == []


def test_the_end_of_a_long_output_is_kept_and_says_how_much_is_lost():
    tail = Tail(10)
    for part in ("abc", "defghijkl", "mn"):
        tail.write(part)
    assert tail.text() == "[4 characters before]\nefghijklmn"


def test_explain_has_reasons_and_computes_no_values():
    found = ask("explain", **TINY)
    assert found["lifted_us"].keys() >= {"launch"}
    assert found["bound"]["name"] in found["lifted_us"]
    assert ask("explain", script=SCRIPT)["dearest"]["lifted_us"]


# ---- refusals ----


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("run", {}, "give one of op, script; got none"),
        ("run", {"op": "matmul", "script": "1"}, "got op and script"),
        ("run", {"op": "matmull"}, "did you mean matmul"),
        ("run", {"op": "matmul", "arguments": ["a"]}, "arguments is for a script"),
        ("run", {"script": "1", "case": "tiny"}, "case is for an operator"),
        ("run", {**TINY, "sizes": {"rows": 1}}, "case and sizes"),
        ("run", {**TINY, "values": False, "time": False}, "nothing to do"),
        ("run", {**TINY, "values": False, "check": True}, "check is about values"),
        ("run", {**TINY, "product": "nothing"}, "unknown product 'nothing'"),
        ("run", {"script": "1", "files": {"script.py": ""}}, "is no name to take"),
        ("run", {"script": "1", "files": {"../x": ""}}, "is no name to take"),
        ("products", {"assumed": True}, "give its name"),
        ("products", {"name": "ascend910b3", "set": {"buffers.ubb": "1"}}, "buffers.ub"),
        ("explore", {"op": "matmul", "case": "tiny", "space": {"nothing": [1]}}, "nothing"),
        ("docs", {"query": "a", "page": "b"}, "give one of them"),
        ("explain", {}, "give one of op, script, task; got none"),
        ("explain", {"op": "matmul", "answer": "x"}, "answer is not for op"),
        ("explain", {"script": "1", "case": "tiny"}, "case is for an operator"),
    ],
)
def test_a_wrong_request_is_told_in_words(name, arguments, words):
    assert words in refusal(name, **arguments)


def test_what_would_fail_on_the_device_is_no_wrong_request():
    error = work({"tool": "run", "arguments": {**BIG, "set": {"buffers.ub": 16384}}}, {})["error"]
    assert error["kind"] == "failed"
    assert "overflow" in error["message"]


def test_a_fault_of_ours_is_named_and_ends_nothing(monkeypatch):
    def broken(arguments):
        raise LookupError("x" * 1000)

    monkeypatch.setitem(TOOLS, "docs", Tool("docs", "", "", {}, broken))
    error = work({"tool": "docs", "arguments": {}}, {})["error"]
    assert error["kind"] == "fault"
    assert error["message"].startswith("LookupError: xxx")
    assert len(error["message"]) < 400


# ---- docs ----


def test_every_page_and_name_of_the_list_can_be_read():
    listed = ask("docs")
    assert {"README.md", "simulator/README.md", "operators/matmul"} <= set(listed["pages"])
    assert "ascendtile.simulator.language.load" in listed["names"]
    for name in [*listed["pages"][:3], listed["pages"][-1], listed["names"][0]]:
        assert ask("docs", page=name)["text"]


def test_a_long_page_is_read_in_parts():
    first = ask("docs", page="simulator/README.md")
    assert len(first["text"]) == PAGE == first["next_offset"]
    second = ask("docs", page="simulator/README.md", offset=PAGE)
    assert len(first["text"]) + len(second["text"]) >= min(first["characters"], 2 * PAGE)


def test_a_search_finds_what_is_named_in_a_heading_first():
    pages = [r["page"] for r in ask("docs", query="language load")["results"]]
    assert pages[0] == "ascendtile.simulator.language.load"
    assert (
        ask("docs", query="rms_norm_grad", most=1)["results"][0]["page"] == "ascendtile.kernels.rms_norm_grad"
    )
    assert ask("docs", query="qqqqzz")["results"] == []


@pytest.mark.parametrize(
    "page", ["../../../etc/passwd", "/etc/passwd", "simulator/../README.md", "nothing", "\0"]
)
def test_no_name_leads_to_another_file(page):
    assert "no page" in refusal("docs", page=page)
