"""Outputs that the user gives: written in place, cast and copied where the operator cannot, refused where it must."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import (
    batch_norm_reduce_backward,
    bce_with_logits_backward,
    convolution_backward,
    get_operator,
    group_norm_backward,
    operators,
    rms_norm_grad,
    run_op,
)

FIVE = (
    "rms_norm_grad",
    "bce_with_logits_backward",
    "batch_norm_reduce_backward",
    "group_norm_backward",
    "convolution_backward",
)
PYTHON_FACES = (
    rms_norm_grad,
    bce_with_logits_backward,
    batch_norm_reduce_backward,
    group_norm_backward,
    convolution_backward,
)


def strided_like(x, dtype=None):
    """Every second element of every axis of a wider array."""
    wide = np.full([2 * n for n in x.shape], -77).astype(dtype or x.dtype)
    return wide[tuple(slice(None, None, 2) for _ in x.shape)]


def options_of(name):
    return get_operator(name).cases["tiny"].options


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", FIVE)
def test_contiguous_outputs_are_written_in_place(name):
    inputs = get_operator(name).inputs("tiny", "float16")
    expected = run_op(name, inputs=inputs, options=options_of(name))
    out = {n: np.full_like(x, 7) for n, x in expected.outputs.items()}
    result = run_op(name, inputs=inputs, options=options_of(name), out=out)
    assert all(result.outputs[n] is out[n] for n in out)
    assert all(out[n].tobytes() == x.tobytes() for n, x in expected.outputs.items())
    assert [x.kernel for x in result.launches] == [x.kernel for x in expected.launches]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", FIVE)
def test_strided_outputs_take_a_copy(name):
    inputs = get_operator(name).inputs("tiny", "bfloat16")
    expected = run_op(name, inputs=inputs, options=options_of(name))
    out = {n: strided_like(x) for n, x in expected.outputs.items()}
    result = run_op(name, inputs=inputs, options=options_of(name), out=out)
    for n, x in expected.outputs.items():
        np.testing.assert_array_equal(out[n], x)
        assert f"out {n} is strided: a launch of its own copies into it" in result.notes
    assert [x.kernel for x in result.launches][-len(out) :] == ["copy_strided"] * len(out)
    assert result.time_us > expected.time_us


@pytest.mark.drawn(5)
@pytest.mark.parametrize("name", FIVE)
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_outputs_of_another_type_take_a_cast(name, kind):
    inputs = get_operator(name).inputs("tiny", "float16")
    expected = run_op(name, inputs=inputs, options=options_of(name), time=False).outputs
    out = {n: strided_like(x, kind) for n, x in expected.items()}
    run_op(name, inputs=inputs, options=options_of(name), out=out, time=False)
    for n, x in expected.items():
        np.testing.assert_array_equal(out[n], x.astype(kind))


@pytest.mark.extra("torch")
def test_torch_outputs_are_written():
    import torch

    inputs = get_operator("rms_norm_grad").inputs("tiny", "float32")
    dx = torch.zeros(64, 8).T
    result = rms_norm_grad(**inputs, out={"dx": dx}, time=False)
    np.testing.assert_array_equal(dx.numpy(), result.outputs["dx"])
    assert dx.abs().sum() > 0


@pytest.mark.drawn(2)
@pytest.mark.parametrize("face", PYTHON_FACES, ids=lambda f: f.__name__)
def test_every_python_face_takes_them(face):
    op = operators()[face.__name__]
    inputs = op.inputs("tiny", "float16")
    expected = face(**inputs, **options_of(op.name), time=False).outputs
    name = op.outputs[0]
    out = strided_like(expected[name])
    face(**inputs, **options_of(op.name), time=False, out={name: out})
    np.testing.assert_array_equal(out, expected[name])


def test_time_only_counts_the_copies_and_writes_nothing():
    shapes = get_operator("rms_norm_grad").shapes("tiny", "float16")
    dx = strided_like(np.zeros((8, 64), np.float16))
    result = run_op("rms_norm_grad", inputs=shapes, values=False, out={"dx": dx})
    assert [x.kernel for x in result.launches] == ["zero_fill", "kept_row", "copy_strided"]
    assert (dx == -77).all()
    assert result.outputs == {}


@pytest.mark.parametrize(
    ("out", "text"),
    [
        ({"dz": np.zeros(1)}, "rms_norm_grad has no output 'dz' here; did you mean dx?"),
        ({"dx": [1.0]}, "out 'dx' is a list; give a numpy array or a torch CPU tensor"),
        ({"dx": np.zeros((8, 63), np.float16)}, "out 'dx' has shape (8, 63); it must be (8, 64)"),
        ({"dx": np.zeros((8, 64), int)}, "out 'dx' holds int64; it must hold float16, bfloat16 or float32"),
        ({"dx": np.zeros((8, 64))}, "out 'dx' holds float64; it must hold float16, bfloat16 or float32"),
        ({"dx": np.broadcast_to(np.float16(0), (8, 64))}, "out 'dx' has elements that share memory"),
        ({"dx": np.frombuffer(bytes(1024), np.float16).reshape(8, 64)}, "out 'dx' has read-only memory"),
    ],
)
def test_outputs_that_cannot_be_taken(out, text):
    with pytest.raises(sim.UsageError) as error:
        run_op("rms_norm_grad", "tiny", "float16", out=out)
    assert text in str(error.value)


def test_an_output_in_place_of_an_input_has_the_values_and_errors_of_one_beside_it():
    """dgamma is cleared before gamma is read: in place of it, it must be written last."""
    for source, name in (("dy", "dx"), ("gamma", "dgamma")):
        inputs = get_operator("rms_norm_grad").inputs("tiny", "float32")
        apart = run_op("rms_norm_grad", inputs=inputs)
        within = run_op("rms_norm_grad", inputs=inputs, out={name: inputs[source]})
        assert within.outputs[name] is inputs[source]
        for n, x in apart.outputs.items():
            assert within.outputs[n].tobytes() == x.tobytes()
            assert repr(within.errors[n].to_dict()) == repr(apart.errors[n].to_dict())
        assert f"out {name} is in place of input {source}: a launch of its own copies into it" in within.notes


@pytest.mark.parametrize("values", [True, False])
def test_outputs_that_share_memory_with_a_part_of_an_input_or_with_each_other_are_refused(values):
    inputs = get_operator("rms_norm_grad").inputs("tiny", "float32")
    flat = np.zeros(65 * 64, np.float32)
    inputs["dy"] = flat[: 8 * 64].reshape(8, 64)
    shifted, turned = flat[1 : 8 * 64 + 1].reshape(8, 64), inputs["dy"][::-1]
    for dx in (shifted, turned):
        with pytest.raises(
            sim.UsageError, match=r"out 'dx' shares memory with a part of input 'dy' .* array of its own"
        ):
            run_op("rms_norm_grad", inputs=inputs, out={"dx": dx}, values=values)
    both = {"dx": flat[600 : 600 + 512].reshape(8, 64), "dgamma": flat[700 : 700 + 64]}
    with pytest.raises(sim.UsageError, match="out 'dgamma' shares memory with out 'dx'"):
        run_op("rms_norm_grad", inputs=inputs, out=both, values=values)
