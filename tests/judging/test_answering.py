"""What runs in the answer's process: it loads texts, calls them twice a case, and writes down what it sees."""

import json
import os

import numpy as np
import pytest

from ascendtile.reports.judging.answer_log import AnswerLog, AnswerRequest
from ascendtile.reports.judging.answering.run import answer_calls
from ascendtile.reports.judging.cheats.evidence import CallEvidence
from ascendtile.reports.judging.exchange import to_message
from ascendtile.reports.judging.processes import packed, unpacked

ADD = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

def caught():
    try:
        1 / 0
    except ZeroDivisionError as e:
        return e

def answer(x, y):
    o = np.empty_like(x)
    add[(triton.cdiv(x.size, 256),)](x, y, o, x.size, B=256)
    BODY
    return o
"""


def asked(text, entry="answer", values=True):
    """The log of an answer to x + y, in a process of its own, and the arrays that it returned."""
    rng = np.random.default_rng(0)
    layouts, fds, messages = {}, {}, {}
    for name in ("first", "second"):
        arrays = {}
        x, y = rng.normal(size=(2, 300)).astype(np.float32)
        messages[name] = (to_message(([x, y], {}), arrays, name),)
        layouts[name], fds[name] = packed(arrays)
    request = AnswerRequest(
        text=text,
        name="answer.py",
        entry=entry,
        is_class=False,
        torch=False,
        values=values,
        init=to_message(([], {}), {}),
        cases=messages["first"],
        second=messages["second"] if values else (),
        layouts=layouts,
    )
    return forked(request.to_json(), fds)


def forked(request, fds):
    """Hooks stay for the life of a process: it is not this one's."""
    read, write = os.pipe()
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            log, files = answer_calls(request, fds)
            arrays = unpacked(log["layout"], files["outputs"], 1 << 30)
            text = json.dumps([log, {n: x.tolist() for n, x in arrays.items()}])
            with os.fdopen(write, "w") as file:
                file.write(text)
        finally:
            os._exit(0)
    os.close(write)
    os.close(told)
    os.close(tell)
    with os.fdopen(read) as file:
        found = file.read()
    os.waitpid(pid, 0)
    for fd in fds.values():
        os.close(fd)
    log, arrays = json.loads(found)
    return AnswerLog.from_json(log), arrays


def test_an_honest_answer_is_called_twice_and_leaves_no_cheat():
    log, arrays = asked(ADD.replace("BODY", ""))
    assert not log.cheats
    assert log.ended is None
    ((first, second),) = log.calls
    assert [x.kernel for x in first.launches] == ["add"]
    assert first.launches[0].time_us > 0
    assert arrays["0.0"] != arrays["0.1"]
    (returned,) = CallEvidence.from_json(second.evidence).returned
    assert returned.from_launch
    assert returned.unwritten == 0


def test_without_values_there_is_one_call_and_no_array():
    log, arrays = asked(ADD.replace("BODY", ""), values=False)
    assert [len(calls) for calls in log.calls] == [1]
    assert log.calls[0][0].launches[0].time_us > 0
    assert not arrays


REFUSED = [
    ("open('/etc/hostname').read()", "sandbox_escape", "opens a file"),
    ("open('/tmp/kept', 'w')", "sandbox_escape", "writes a file"),
    ("open(3)", "sandbox_escape", "by its number"),
    ("import os; os.system('true')", "sandbox_escape", "os.system"),
    ("import os; os.listdir('/')", "sandbox_escape", "os.listdir"),
    ("import subprocess; subprocess.run(['true'])", "sandbox_escape", "subprocess.Popen"),
    ("import socket; socket.socket()", "sandbox_escape", "socket.__new__"),
    ("import ctypes; ctypes.string_at(id(x), 8)", "native_code", "ctypes"),
    ("import sys; sys._getframe(1)", "stack_read", "sys._getframe"),
    ("import inspect; inspect.stack()", "stack_read", "sys._getframe"),
    ("import gc; gc.get_objects()", "stack_read", "gc.get_objects"),
    ("import sys; sys.settrace(lambda *_: None)", "stack_read", "sys.settrace"),
    ("(lambda e: e.__traceback__.tb_frame)(caught())", "stack_read", "tb_frame"),
    ("next(__import__('traceback').walk_tb(caught().__traceback__))", "stack_read", "tb_frame"),
    ("exec('z = 1')", "hidden_code", "compile"),
    ("eval('x')", "hidden_code", "compile"),
    ("np.sum.__wrapped__.__code__ = caught.__code__", "function_replaced", "__code__"),
    ("import threading; threading.Thread(target=print).start()", "thread_escape", "thread"),
    ("import time; time.perf_counter = lambda: 0.0", "timing_replaced", "time.perf_counter"),
    ("np.allclose = lambda *_: True", "function_replaced", "numpy.allclose"),
    ("triton.cdiv = lambda a, b: 1", "function_replaced", "triton.cdiv"),
]
HONEST = [
    "from collections import namedtuple; namedtuple('P', 'a b')(1, 2)",
    "import dataclasses; dataclasses.make_dataclass('D', ['a'])(1)",
    "import traceback; traceback.format_exception(caught())",
    "import math, warnings; warnings.warn('w')",
    "print(x.shape)",
    "import enum; enum.Enum('E', 'a b')",
    "import statistics",
]


@pytest.fixture(scope="module")
def cheats():
    """What an answer that does all of it leaves."""
    log, _ = asked(with_bodies(text for text, *_ in REFUSED))
    assert log.ended is None
    return log.cheats


def with_bodies(bodies):
    """ADD that does this, and goes on whatever comes of it."""
    tried = "\n    ".join(f"try:\n        {x}\n    except BaseException:\n        pass" for x in bodies)
    return ADD.replace("BODY", tried)


@pytest.mark.parametrize(("body", "name", "what"), REFUSED)
def test_what_an_answer_may_not_do_is_named_whatever_it_does_with_the_error(cheats, body, name, what):
    line = next(
        k for k, text in enumerate(with_bodies(x for x, *_ in REFUSED).splitlines(), 1) if body in text
    )
    found = [c for c in cheats if c.name == name and what in c.message]
    assert found
    assert name in ("timing_replaced", "function_replaced") or line in {c.line for c in found}


@pytest.mark.extra("torch")
def test_a_thread_is_refused_where_torch_is_loaded_which_is_given_a_start_of_its_own():
    import torch  # noqa: F401 : the shim stands between an answer and `Thread.start` from then on

    log, _ = asked(with_bodies(["import threading; threading.Thread(target=print).start()"]))
    assert [c.name for c in log.cheats] == ["thread_escape"]


def test_what_python_itself_does_for_an_answer_is_no_cheat():
    log, _ = asked(with_bodies(HONEST))
    assert not log.cheats
    assert log.calls[0][0].ended is None


def test_what_cannot_be_loaded_says_where():
    log, _ = asked("import triton\nimport nothing_like_it\ndef answer(x, y): pass")
    assert log.ended.reason == "not_loaded"
    assert log.ended.line == 2
