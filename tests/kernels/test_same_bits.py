"""Same input, same bits: whatever the chunk, and on every machine (hashes of results are checked in)."""

import hashlib

import ml_dtypes
import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import run_op
from ascendtile.simulator.interpreter import lanes


def numbers(shape, seed, dtype):
    """Values in -2 to 2 from integers alone: no random generator, no library function."""
    n = np.arange(int(np.prod(shape)), dtype=np.uint64) + np.uint64(seed * 7919)
    mixed = (n * np.uint64(2654435761) ^ (n >> np.uint64(3)) * np.uint64(40503)) & np.uint64(0xFFFFFF)
    return (mixed.astype(np.float64) / 2**22 - 2).reshape(shape).astype(dtype)


def inputs(op, dtype):
    if op == "matmul":
        return {"a": numbers((37, 131), 1, dtype), "b": numbers((131, 45), 2, dtype)}
    if op == "rms_norm_grad":
        return {
            "dy": numbers((13, 200), 1, dtype),
            "x": numbers((13, 200), 2, dtype),
            "rstd": np.abs(numbers((13,), 3, np.float32)) + np.float32(0.5),
            "gamma": numbers((200,), 4, dtype),
        }
    if op == "batch_norm_reduce_backward":
        return {
            "grad_out": numbers((5, 7, 61), 1, dtype),
            "x": numbers((5, 7, 61), 2, dtype),
            "mean": numbers((7,), 3, np.float32),
            "invstd": np.abs(numbers((7,), 4, np.float32)) + np.float32(0.5),
        }
    if op == "group_norm_backward":
        return {
            "grad_out": numbers((5, 12, 31), 1, dtype),
            "x": numbers((5, 12, 31), 2, dtype),
            "mean": numbers((5, 4), 3, dtype),
            "rstd": np.abs(numbers((5, 4), 4, dtype)),
            "gamma": numbers((12,), 5, dtype),
        }
    return {
        "grad_output": numbers((1,), 1, dtype),
        "x": numbers((9, 333), 2, dtype),
        "target": np.abs(numbers((9, 333), 3, dtype)) / np.dtype(dtype).type(2),
    }


HASHES = {
    ("batch_norm_reduce_backward", "float16"): "c9c0e55355cb292f",
    ("batch_norm_reduce_backward", "bfloat16"): "cd94e949078cc697",
    ("batch_norm_reduce_backward", "float32"): "1c06eebe3d2aadf8",
    ("group_norm_backward", "float16"): "0e7912ad2b40a676",
    ("group_norm_backward", "bfloat16"): "77d7f0f06118fcf4",
    ("group_norm_backward", "float32"): "ec96cb782e771396",
    ("matmul", "float16"): "b1b1acc63b6f8789",
    ("matmul", "bfloat16"): "4c0907493afde096",
    ("matmul", "float32"): "26bcc798125ee411",
    ("rms_norm_grad", "float16"): "1922043acac4475e",
    ("rms_norm_grad", "bfloat16"): "b5698bf289625e27",
    ("rms_norm_grad", "float32"): "105cc71821d2817b",
    ("bce_with_logits_backward", "float16"): "2af9ab7366b94df7",
    ("bce_with_logits_backward", "bfloat16"): "679a46c041ccca4c",
    ("bce_with_logits_backward", "float32"): "5ceec1e59f5f7a78",
}


def digest(op, dtype):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    given = inputs(op, kind)
    wide = (
        {"out_dtype": "float32"} if op == "batch_norm_reduce_backward" else {}
    )  # sums before they are rounded
    outputs = run_op(op, inputs=given, product="ascend910b3", options=wide, time=False, errors=False).outputs
    h = hashlib.sha256()
    for name in sorted(outputs):
        h.update(np.ascontiguousarray(outputs[name]).tobytes())
    return h.hexdigest()[:16]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("op", "dtype"), HASHES)
def test_bits_do_not_depend_on_chunk_or_machine(op, dtype, monkeypatch):
    found = set()
    for chunk in (1, 1 << 12, 1 << 17):
        monkeypatch.setattr(lanes, "CHUNK_ELEMENTS", chunk)
        found.add(digest(op, dtype))
    assert found == {HASHES[op, dtype]}


def test_hf32_changes_the_bits_of_float32_products_only():
    a, b = numbers((32, 64), 1, np.float32), numbers((64, 32), 2, np.float32)
    with sim.device("ascend910b3"):
        plain, hf32 = (
            run_op("matmul", inputs={"a": a, "b": b}, cube_math_type=mode, time=False).outputs["out"]
            for mode in ("KEEP_DTYPE", "USE_HF32")
        )
    assert (plain != hf32).mean() > 0.9
