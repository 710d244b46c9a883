"""Tasks, and answers to them that are made of one text, in which parts are filled in."""

TASKS = {
    "add": """
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y

def get_inputs():
    return [torch.rand(40, 64), torch.rand(40, 64)]
""",
    "matmul": """
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.matmul(x, y)

def get_inputs():
    return [torch.rand(64, 64), torch.rand(64, 64)]
""",
    "softmax": """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

def get_inputs():
    return [torch.rand(2, 8192)]
""",
    "total": """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum()

def get_inputs():
    return [torch.rand(64, 512)]
""",
}

START = """
import torch
import torch.nn as nn
import triton
import triton.language as tl
HEAD
"""
MODEL = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        INIT

    def forward(self, INPUTS):
        FORWARD
"""
KERNELS = {
    "add": """
@triton.jit
def kernel(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
""",
    "matmul": """
@triton.jit
def kernel(x, y, o, N: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a, b = tl.load(x + r * N + c), tl.load(y + r * N + c)
    tl.store(o + r * N + c, PRODUCT)
""",
    "softmax": """
@triton.jit
def kernel(x, o, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + i, e / tl.sum(e, 0))
""",
    "total": """
@triton.jit
def kernel(x, o, N: tl.constexpr):
    p = tl.program_id(0)
    tl.store(o + p, tl.sum(tl.load(x + p * N + tl.arange(0, N)), 0))
""",
}
INPUTS = {"add": "x, y", "matmul": "x, y", "softmax": "x", "total": "x"}
LAUNCH = "kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), B=256)"
FORWARDS = {
    "add": f"out = torch.empty_like(x)\n{LAUNCH}\nreturn out",
    "matmul": "out = torch.empty_like(x)\nkernel[(1,)](x, y, out, N=64)\nreturn out",
    "softmax": "out = torch.empty_like(x)\nkernel[(2,)](x, out, N=8192)\nreturn out",
    "total": "out = torch.empty(64)\nkernel[(64,)](x, out, N=512)\nreturn out.sum()",
}


def answer(task="add", head="", init="pass", forward="", kernel="", product="tl.dot(a, b)"):
    """The text of an answer; what is not given is honest."""
    text = START.replace("HEAD", head) + (kernel or KERNELS[task]).replace("PRODUCT", product)
    model = MODEL.replace("INIT", _indented(init)).replace("INPUTS", INPUTS[task])
    return text + model.replace("FORWARD", _indented(forward or FORWARDS[task]))


def _indented(text):
    return "\n        ".join(text.splitlines())
