"""Whatever a client sends as arguments is taken or refused in words; nothing else comes of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.reports.serving.tools.catalogue import TOOLS
from ascendtile.reports.serving.tools.tool import MOST_TEXT, MOST_WORDS
from ascendtile.simulator.errors import UsageError

pytestmark = pytest.mark.extra("mcp")

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def refusal(name, arguments):
    """The words of a refusal; None where the arguments are taken."""
    from ascendtile.reports.serving.checking import check

    try:
        check(TOOLS[name], arguments)
    except UsageError as e:
        return str(e)
    return None


@given(st.sampled_from(list(TOOLS)), st.data())
def test_any_arguments_are_taken_or_refused_in_a_few_words(name, data):
    names = st.sampled_from([*TOOLS[name].properties, "x"])
    arguments = data.draw(st.dictionaries(names, values, max_size=4))
    message = refusal(name, arguments)
    assert message is None or (message.startswith(f"{name}: ") and len(message) < 500)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("run", {"nothing": 1}, "'nothing' was unexpected"),
        ("run", {"op": 1}, "op: 1 is not of type 'string'"),
        ("run", {"op": ""}, "op is empty"),
        (
            "run",
            {"script": "x" * (MOST_TEXT + 1)},
            f"script has {MOST_TEXT + 1} characters, at most {MOST_TEXT}",
        ),
        ("run", {"arguments": ["x"] * (MOST_WORDS + 1)}, f"arguments has {MOST_WORDS + 1} items, at most"),
        ("run", {"sizes": {"rows": -1}}, "sizes['rows']: -1 is less than the minimum of 0"),
        ("run", {"sizes": {"rows": 1.5}}, "sizes['rows']: 1.5 is not of type"),
        ("run", {"product": "../x.toml"}, "product: '../x.toml' does not match"),
        ("run", {"files": {"../x": ""}}, "files"),
        (
            "explore",
            {"op": "matmul", "constraints": ["import os"]},
            "constraints[0]: 'import os' does not match",
        ),
        ("explore", {"op": "matmul", "budget": 10**9}, "budget: 1000000000 is greater than the maximum"),
        ("explore", {}, "op must be given"),
        ("judge", {}, "task and answer must be given, or task_path and answer_path instead"),
        ("judge", {"task": "x"}, "answer must be given, or answer_path instead"),
        ("docs", {"page": "x" * 1000}, "page has 1000 characters"),
    ],
)
def test_a_refusal_names_argument_rule_and_both_numbers(name, arguments, words):
    assert words in refusal(name, arguments)


@pytest.mark.parametrize(
    "arguments", [{"task_path": "a", "answer_path": "b"}, {"task": "x", "answer_path": "b"}]
)
def test_a_path_counts_as_the_text_that_it_stands_for(arguments):
    assert refusal("judge", arguments) is None


def test_a_tool_that_is_not_there_is_told_with_those_that_are():
    from ascendtile.reports.serving.checking import known

    with pytest.raises(UsageError, match="no tool 'x'; there are run, judge"):
        known("x")


def test_the_interface_as_openapi_has_every_tool_and_the_schema_of_verdicts():
    from ascendtile.reports.serving.plain_http import openapi

    described = json.loads(json.dumps(openapi()))
    assert {p.removeprefix("/v1/") for p in described["paths"]} == TOOLS.keys()
    body = described["paths"]["/v1/run"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == TOOLS["run"].schema
    assert "suggestion" in described["components"]["schemas"]["Verdict"]["properties"]
