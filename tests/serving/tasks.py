"""A small task and answers to it, without torch."""

TASK = """
import numpy as np

class Model:
    def __call__(self, x):
        return np.maximum(x, 0)

def get_inputs():
    return [np.random.randn(64, 512).astype(np.float32)]
"""
ANSWER = """
import numpy as np, triton, triton.language as tl

@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.maximum(tl.load(x + at, mask=at < n), 0.0), mask=at < n)

class ModelNew:
    def __call__(self, x):
        y = np.empty_like(x)
        relu[(x.size // 1024,)](x, y, x.size, BLOCK=1024)
        return y
"""
SCRIPT = """
import sys
import numpy as np, triton, triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

x = np.ones(100, np.float32)
y = np.empty(100, np.float32)
double[(2,)](x, y, 100, BLOCK=64)
print(sys.argv[1:], y.sum())
"""

TORCH_TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return torch.nn.functional.leaky_relu(x, self.slope)

def get_inputs():
    return [torch.randn(64, 512)]

def get_init_inputs():
    return [0.1]
"""
TORCH_ANSWER = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def leaky(x, y, n, slope, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(v > 0, v, v * slope), mask=at < n)

class ModelNew(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        y = torch.empty_like(x)
        leaky[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), self.slope, BLOCK=1024)
        return y
"""
