"""What the five operators do beyond their documents, and values that a product does not keep: said in both faces.

The documents are the pages that the operators were first written from; newer ones of the vendor have some of it.
"""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import aclnn, get_operator, run_op

from ..calls import strided
from . import test_batch_norm_page as bn
from . import test_bce_page as bce
from . import test_convolution_page as conv
from . import test_group_norm_page as gn
from . import test_rms_norm_page as rms
from .rows import A2, A3, F16, F32, INFERENCE, TRAINING, typed

# Operator -> its page, the name of a tensor in the C interface and in Python, products of it whose results saturate.
PAGES = {
    "batch_norm_reduce_backward": (bn, "gradOut", "grad_out", (TRAINING,)),
    "rms_norm_grad": (rms, "dy", "dy", (INFERENCE,)),
    "bce_with_logits_backward": (bce, "self", "x", (TRAINING, INFERENCE)),
    "convolution_backward": (conv, "gradOutput", "grad_output", (TRAINING, INFERENCE)),
    "group_norm_backward": (gn, "gradOut", "grad_out", (TRAINING,)),
}
SATURATING = [(op, product) for op, (*_, products) in PAGES.items() for product in products]
every_operator = pytest.mark.parametrize("op", PAGES)
BECOMES = "with infinities or NaN: NaN counts as 0, infinity as the largest number"
EXCLUDED = (
    "with infinities or NaN, which is not supported there: NaN counts as 0, infinity as the largest number"
)
BEYOND = "its document does not have it, newer ones do"


def call(op, product, value=1.0):
    """An executor whose kernels have run on a product; the first element of its first tensor has that value."""
    page, name, _, _ = PAGES[op]
    given = typed(page.good(), F16) if page is bce else page.good()
    with sim.device(product):
        given[name].array()[(0,) * len(given[name].shape)] = value
        status, size, executor = page.PHASE_ONE(*given.values())
        assert status == 0, aclnn.aclGetRecentErrMsg()
        before = executor.notes
        stream = aclnn.aclrtCreateStream()[1]
        assert page.PHASES[1](aclnn.aclrtMalloc(size)[1], size, executor, stream) == 0
        assert aclnn.aclrtSynchronizeStream(stream) == 0
    return before, executor.notes


def python(op, product, name, value):
    """The Python face on the smallest case, with one element of an input set to `value`."""
    inputs = get_operator(op).inputs("tiny", F16)
    inputs[name].reshape(-1)[0] = value
    common = {"options": get_operator(op).cases["tiny"].options, "time": False, "errors": False}
    return run_op(op, inputs=inputs, product=product, **common)


# -- values that are not kept ------------------------------------------------------------------------------------------


@pytest.mark.drawn(7)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("op", "product"), SATURATING)
def test_nan_and_infinities_that_become_numbers_are_a_warning_in_python(op, product, value):
    name = PAGES[op][2]
    found = python(op, product, name, value)
    words = EXCLUDED if op == "rms_norm_grad" else BECOMES
    assert found.warnings == (f"{op} on {product}: {name} {words}",)
    assert all(np.isfinite(x.astype(np.float32)).all() for x in found.outputs.values())


@pytest.mark.drawn(5)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(("op", "product"), SATURATING)
def test_nan_and_infinities_that_become_numbers_are_a_note_of_the_executor(op, product, value):
    """Known when the kernels run: the status is 0, the note is there after the synchronisation."""
    page, name, _, _ = PAGES[op]
    before, after = call(op, product, value)
    api = page.PHASES[1].__name__
    words = EXCLUDED if op == "rms_norm_grad" else BECOMES
    assert set(after) - set(before) == {f"{api} on {product}: {name} {words}"}
    assert aclnn.aclGetRecentErrMsg() == ""


@pytest.mark.drawn(4)
@pytest.mark.parametrize(("op", "product"), [*SATURATING, *((op, "ascend910b3") for op in PAGES)])
def test_numbers_are_no_warning_and_neither_is_nan_that_is_kept(op, product):
    assert len(set(call(op, product))) == 1
    name = PAGES[op][2]
    assert python(op, product, name, 1.0).warnings == python(op, "ascend910b3", name, np.nan).warnings == ()


def test_the_warning_follows_the_overflow_mode_and_needs_values():
    inputs = get_operator("bce_with_logits_backward").inputs("tiny", F16)
    inputs["x"][0, 0] = np.nan
    ask = {"inputs": inputs, "errors": False}
    with sim.device("ascend910b3", numerics={"overflow_mode": "saturate"}):
        assert len(run_op("bce_with_logits_backward", **ask, time=False).warnings) == 1
    with sim.device(TRAINING, numerics={"overflow_mode": "inf_nan"}):
        assert run_op("bce_with_logits_backward", **ask, time=False).warnings == ()
    with sim.device(TRAINING):
        assert run_op("bce_with_logits_backward", **ask, values=False).warnings == ()
        recorded = run_op("bce_with_logits_backward", **ask).run
        assert any(BECOMES in w for w in recorded.launches[0].warnings)


def test_a_repeatable_executor_tells_it_once_and_of_the_values_of_the_run():
    given = rms.good()
    with sim.device(INFERENCE):
        _, size, executor = rms.PHASE_ONE(*given.values())
        aclnn.aclSetAclOpExecutorRepeatable(executor)
        stream, workspace = aclnn.aclrtCreateStream()[1], aclnn.aclrtMalloc(size)[1]
        for value, notes in ((1.0, 0), (np.nan, 1), (np.nan, 1)):
            given["dy"].array()[0, 0, 0] = value
            rms.PHASES[1](workspace, size, executor, stream)
            assert aclnn.aclrtSynchronizeStream(stream) == 0
            assert len(executor.notes) == notes


# -- beyond the documents ----------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@every_operator
def test_a3_is_beyond_the_documents_but_for_bce(op):
    """The page of BinaryCrossEntropyWithLogitsBackward has the series; the other four have A2 and what came before."""
    page = PAGES[op][0]
    for product in (*A2, A3):
        with sim.device(product):
            executor = page.PHASE_ONE(*page.good().values())[2]
            found = run_op(op, "tiny", F16, values=False).notes
        said = [n for n in executor.notes if "Atlas A3" in n]
        wanted = product == A3 and op != "bce_with_logits_backward"
        assert len(said) == len([n for n in found if "Atlas A3" in n]) == wanted
        assert not said or said == [f"{A3}, of the Atlas A3 series: {BEYOND}"]


@pytest.mark.parametrize("name", ["dy", "x", "rstd", "gamma", "dxOut", "dgammaOut"])
def test_tensors_with_strides_are_beyond_the_document_of_rms_norm_grad(name):
    tensors = rms.good()
    tensors[name] = strided(np.zeros(tensors[name].shape), F32 if name in ("rstd", "dgammaOut") else F16)
    status, _, executor = rms.PHASE_ONE(*tensors.values())
    assert (status, executor.notes) == (0, (f"{name} with strides: {BEYOND}",))
    assert rms.PHASE_ONE(*rms.good().values())[2].notes == ()


@pytest.mark.parametrize("op", [n for n in PAGES if n not in ("rms_norm_grad", "convolution_backward")])
def test_strides_are_in_the_documents_of_the_others(op):
    page, name, _, _ = PAGES[op]
    given = page.good()
    given[name] = strided(np.zeros(given[name].shape), F16)
    status, _, executor = page.PHASE_ONE(*given.values())
    assert (status, executor.notes) == (0, ())


@pytest.mark.parametrize("op", PAGES)
def test_docstrings_name_what_is_beyond_the_document(op):
    import ascendtile.kernels as kernels

    text, beyond = getattr(kernels, op).__doc__, get_operator(op).beyond
    assert (beyond is None) == (op == "bce_with_logits_backward")
    for asked, word in (
        ("Beyond the operator's document", beyond),
        ("Atlas A3", beyond and beyond.a3),
        ("bfloat16 and the Atlas", beyond and beyond.dtypes),
        ("not contiguous", beyond and beyond.strided),
    ):
        assert not word or asked in text
