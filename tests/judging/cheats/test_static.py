"""What a text shows: every spelling of what has no honest use, and nothing of what has."""

import pytest

from ascendtile.reports.judging.cheats import CATALOGUE, pattern
from ascendtile.reports.judging.cheats.launch_sites import launch_sites
from ascendtile.reports.judging.cheats.static import static_cheats
from ascendtile.simulator.errors import UsageError

CHEATS = [
    ("import ctypes as c", "native_code"),
    ("from torch.utils.cpp_extension import load_inline", "native_code"),
    ("import subprocess", "sandbox_escape"),
    ("import multiprocessing.pool", "sandbox_escape"),
    ("from os import system as s", "sandbox_escape"),
    ("import os\ng = getattr(os, 'popen')", "sandbox_escape"),
    ("import os\nos.pread(3, 8, 0)", "sandbox_escape"),
    ("import os\nos.sendfile(5, 3, 0, 8)", "sandbox_escape"),
    ("import posix\nposix.read(3, 8)", "sandbox_escape"),
    ("import torch\ntorch.from_file('/proc/self/fd/3', size=8)", "sandbox_escape"),
    ("import torch\ntorch.UntypedStorage.from_file('/proc/self/fd/3', False, 8)", "sandbox_escape"),
    ("with open('x') as f: pass", "sandbox_escape"),
    ("import torch as t\nt.save(1, 'x')", "sandbox_escape"),
    ("from concurrent.futures import ThreadPoolExecutor", "thread_escape"),
    ("import sys\nf = sys._getframe", "stack_read"),
    ("from sys import _getframe as g", "stack_read"),
    ("import sys as s\nx = s\nx._getframe(1)", "stack_read"),
    ("def f(e):\n    return e.__traceback__.tb_frame.f_back", "stack_read"),
    ("from inspect import stack", "stack_read"),
    ("import gc\ngc.get_referrers(1)", "stack_read"),
    ("exec('1')", "hidden_code"),
    ("e = eval", "hidden_code"),
    ("f = lambda: __import__('os')", "hidden_code"),
    ("import builtins\nbuiltins.exec('1')", "hidden_code"),
    ("import torch\ngetattr(torch, 'mat' + 'mul')", "hidden_code"),
    ("import torch\ngetattr(torch, 'lumtam'[::-1])", "hidden_code"),
    ("import torch\ngetattr(torch, ''.join(['mat', 'mul']))", "hidden_code"),
    ("def f(k): return k.__globals__", "hidden_code"),
    ("import triton\nfor n in dir(triton): pass", "hidden_code"),
    ("from sys import *", "hidden_code"),
    ("import sys\nm = sys.modules['x']", "harness_tampered"),
    ("from torch.utils._python_dispatch import _disable_current_modes", "harness_tampered"),
    ("import torch\ntorch._C._something()", "harness_tampered"),
    ("import ascendtile.simulator as s\ns.observers.watch", "harness_tampered"),
    ("from ascendtile.simulator import device", "harness_tampered"),
    ("import torch\nclass T(torch.Tensor): pass", "lazy_output"),
    ("from torch import Tensor\nclass T(Tensor): pass", "lazy_output"),
    ("class T:\n    def __torch_function__(self): pass", "lazy_output"),
    ("from my_task import Model", "reference_imported"),
    ("import my_task", "reference_imported"),
    ("import importlib\nimportlib.import_module('my_task')", "reference_imported"),
    ("import helper\nclass ModelNew(helper.Model): pass", "reference_imported"),
    ("import time\ntime.time = None", "timing_replaced"),
    ("import time as t\nt.perf_counter, x = 1, 2", "timing_replaced"),
    ("from torch import cuda\ncuda.Event = None", "timing_replaced"),
    ("import torch\ntry:\n    torch.npu.Event.record = None\nexcept Exception:\n    pass", "timing_replaced"),
    ("import torch\nsetattr(torch.cuda, 'synchronize', None)", "timing_replaced"),
    ("import triton\ns = setattr\ns(triton.testing, 'do_bench', None)", "timing_replaced"),
    ("import torch\ntorch.__dict__['allclose'] = None", "function_replaced"),
    ("import torch\nfor torch.matmul in (1,): pass", "function_replaced"),
    ("import torch\ndel torch.allclose", "function_replaced"),
    ("import functools, torch\nf = functools.partial(setattr, torch)", "function_replaced"),
    ("import builtins\nbuiltins.abs = None", "function_replaced"),
    ("from unittest.mock import patch", "function_replaced"),
]
HONEST = [
    "# exec('1'); import ctypes\nx = 'torch.matmul = 1; sys._getframe'",
    "import os\nos.environ['TRITON_PRINT_AUTOTUNING'] = '1'",
    "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True",
    "import torch\nclass M(torch.nn.Module):\n    def f(self):\n        self.time = self.eval()\n        self.record = 2",
    "import sys\nprint('torch_npu' in sys.modules, sys.version)",
    "import torch\nd = getattr(torch, 'float16')\ndef f(name): return getattr(torch, name)",
    "def compile(x): return x\ny = compile(3)",
    "class Model: pass\nclass ModelNew(Model): pass",
    "import math, typing, functools, dataclasses, itertools, time, triton, triton.language as tl\nt = time.time()",
    "from triton.language.extra.cann import libdevice\nimport torch.nn.functional as F",
    "from helper import Model as Block, kernel",
    "import torch\nx = torch.empty(3)\nx.data = x\nx[0] = 1\nx.grad = None",
]


@pytest.mark.parametrize(("text", "name"), CHEATS)
def test_what_has_no_honest_use_is_named_at_its_line(text, name):
    found = static_cheats(text, "my_task")
    assert name in {c.name for c in found}
    assert all(c.name in CATALOGUE and c.line and c.evidence for c in found)


@pytest.mark.parametrize("text", HONEST)
def test_what_has_an_honest_use_is_left_to_the_calls(text):
    assert static_cheats(text, "my_task", siblings=("helper",)) == ()


def test_a_text_that_is_no_python_has_no_cheats():
    assert static_cheats("def (:") == launch_sites("def (:", "f") == ()


def test_a_launch_is_where_it_is_and_under_what():
    text = """
def a(x): k[(1,)](x)
def b(x):
    if x: return x
    k[(1,)](x)
def c(x):
    try: k.run(x, grid=(1,))
    finally: pass
def d(x): k[(1,)](x) if x else None
class ModelNew:
    def forward(self, x):
        a(x), b(x), c(x)
"""
    found = [(s.line, s.conditional, s.called) for s in launch_sites(text, "ModelNew")]
    assert found == [(2, False, True), (5, True, True), (7, True, True), (9, True, False)]


def test_every_pattern_says_what_to_write_and_who_described_it():
    for name, found in CATALOGUE.items():
        assert pattern(name) is found
        assert all((found.what, found.found, found.instead, found.sources))
    with pytest.raises(UsageError, match="torch_compute"):
        pattern("none")
