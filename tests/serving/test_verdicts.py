"""A verdict is the same from Python, over HTTP and over the Model Context Protocol, with torch and without, each time."""

import asyncio
import json

import pytest

from ascendtile.reports.judging.judge import judge

from .tasks import ANSWER, TASK, TORCH_ANSWER, TORCH_TASK
from .test_served_mcp import over_http

NUMPY, TORCH = (TASK, ANSWER), (TORCH_TASK, TORCH_ANSWER)


async def twice(transport, arguments):
    """The verdict of two calls in one session."""
    from mcp.client.client import Client

    async with Client(transport) as client:
        return [(await client.call_tool("judge", arguments)).structured_content for _ in range(2)]


@pytest.mark.exhaustive
@pytest.mark.extra("mcp")
@pytest.mark.parametrize(
    "pair", [NUMPY, pytest.param(TORCH, marks=pytest.mark.extra("torch"))], ids=["numpy", "torch"]
)
def test_python_http_and_agents_get_one_verdict(start, tmp_path, pair):
    files = [tmp_path / "task.py", tmp_path / "answer.py"]
    for path, text in zip(files, pair, strict=True):
        path.write_text(text)
    wanted = judge(*files).to_json()
    assert wanted["verdict"] == "correct"
    served = start("--slots", "1", "--root", str(tmp_path), "--torch" if pair is TORCH else "--no-torch")
    texts = dict(zip(("task", "answer"), pair, strict=True))
    answers = [
        served.ask("judge", given)[1]
        for given in (texts, {"task_path": "task.py", "answer_path": "answer.py"})
    ]
    answers += asyncio.run(twice(over_http(served), texts))
    assert {json.dumps(a) for a in answers} == {json.dumps(wanted)}
