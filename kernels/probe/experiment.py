"""One experiment: a kernel of `board/probe_kernels.py` with inputs chosen so that few bits answer a question."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...simulator.precision.rounding import decode, encode

Words = np.ndarray  # of uint16, uint32 or int32: what lies in memory
WORDS = {"fp32": np.uint32, "int32": np.int32, "fp16": np.uint16, "bf16": np.uint16}


@dataclass(frozen=True)
class BoardTensor:
    """A tensor of a kernel: its data type, of WORDS, and its bits."""

    dtype: str
    words: Words

    @property
    def values(self) -> np.ndarray:
        """float32, or int32, in the shape of the words."""
        return self.words if self.dtype == "int32" else values_of(self.words, self.dtype)


@dataclass(frozen=True)
class Experiment:
    """name: of its files. kernel: of probe_kernels. inputs, outputs: in the order of the kernel's arguments.

    outputs hold what is in memory before the launch. operand: format in which the Cube reads its operands, where it is
    asked for products.
    """

    name: str
    kernel: str
    inputs: Mapping[str, BoardTensor]
    outputs: Mapping[str, BoardTensor]
    constants: Mapping[str, Any] = field(default_factory=dict)
    grid: tuple[int, ...] = (1,)
    operand: str = ""

    @property
    def tensors(self) -> dict[str, BoardTensor]:
        return {**self.inputs, **self.outputs}

    @property
    def output(self) -> BoardTensor:
        """The only output."""
        (found,) = self.outputs.values()
        return found

    def told(self) -> dict[str, Any]:
        """As `experiments.json` has it."""
        return {
            "name": self.name,
            "kernel": self.kernel,
            "grid": list(self.grid),
            "constants": dict(self.constants),
            "inputs": [[n, x.dtype] for n, x in self.inputs.items()],
            "outputs": [[n, x.dtype] for n, x in self.outputs.items()],
            "digest": self.digest,
        }

    @property
    def digest(self) -> str:
        """Names these inputs: a result of others answers another question."""
        about = [self.name, self.kernel, list(self.grid), dict(self.constants)]
        found = hashlib.sha256(json.dumps(about).encode())
        for name, x in self.tensors.items():
            found.update(f"{name} {x.dtype} {x.words.shape}".encode() + x.words.tobytes())
        return found.hexdigest()[:16]


def operand(values: ArrayLike, dtype: str) -> BoardTensor:
    """Values, which the type holds exactly, as an operand."""
    if dtype == "int32":
        return BoardTensor(dtype, np.array(values, np.int32))
    held = BoardTensor(dtype, words_of(np.asarray(values, np.float32), dtype))
    if not np.array_equal(held.values, values, equal_nan=True):
        raise AssertionError(f"an operand of an experiment is no {dtype} number")
    return held


def of_words(words: ArrayLike, dtype: str) -> BoardTensor:
    return BoardTensor(dtype, np.array(words, WORDS[dtype]))


def empty(shape: tuple[int, ...], dtype: str) -> BoardTensor:
    """An output that is zero before the launch."""
    return BoardTensor(dtype, np.zeros(shape, WORDS[dtype]))


def values_of(words: Words, dtype: str) -> np.ndarray:
    """Bits of a floating-point type as float32."""
    if dtype == "fp32":
        return words.view(np.float32)
    return decode(words.reshape(-1), dtype).reshape(words.shape)


def words_of(values: np.ndarray, dtype: str) -> Words:
    """float32 values as bits of a type, rounded to nearest."""
    if dtype == "int32":
        return values.astype(np.int32)
    return np.ascontiguousarray(encode(values, dtype)).view(WORDS[dtype])
