"""Laws of blame: shares add up to one, a planted culprit has nearly all of it, and lines of a step add up to the step."""

from __future__ import annotations

import numpy as np
import pytest

from ascendtile.kernels.chains import ChainStep, run_chain
from ascendtile.kernels.chains.lines import CAST

from .small import PARTS, ROUND_TRIP, small

PRODUCT = "ascend910b3"
TENSORS = ("x", "gamma", "w", "target", "y", "logits")


@pytest.mark.parametrize("formats", [{}, {"all": "fp16"}, {"y": "bf16", "w": "fp16"}, {"logits": "tf32"}])
def test_shares_and_shares_by_step_add_up_to_one(formats):
    blame = run_chain(small(), formats=formats, product=PRODUCT).blame
    for output, shares in blame.shares.items():
        assert sum(shares.values()) == pytest.approx(1)
        assert sum(blame.by_step(output).values()) == pytest.approx(1)
        assert blame.by_step(output).keys() == {"", "norm", "head", "bce"}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("culprit", TENSORS)
def test_one_tensor_in_bf16_among_fp32_has_the_blame(culprit):
    blame = run_chain(small(), formats={culprit: "bf16"}, product=PRODUCT).blame
    output = "loss" if culprit == "target" else "logits"
    near = 0.05 if culprit == "target" else 1e-3  # of the loss, errors of its other terms are near its own
    assert blame.shares[output][f"storage of {culprit}"] == pytest.approx(1, abs=near)


def test_one_product_in_fp16_among_fp32_has_the_blame():
    blame = run_chain(small(), modes={"head": "USE_FP16"}, product=PRODUCT).blame
    assert blame.shares["logits"]["arithmetic of head"] == pytest.approx(1, abs=1e-3)


def test_what_rounds_nothing_has_no_blame():
    blame = run_chain(ROUND_TRIP, formats={"x": "fp16"}, product=PRODUCT).blame
    shares = blame.shares["y"]
    assert shares.pop("storage of x") == pytest.approx(1)
    assert set(shares.values()) == {0.0}


def test_an_exact_chain_has_no_blame_to_share():
    numbers = {"x": np.ones((6, 40), np.float32)}
    blame = run_chain(ROUND_TRIP, product=PRODUCT, inputs=numbers).blame
    assert set(blame.shares["y"].values()) == {0.0}


def test_what_makes_elements_infinite_is_told_and_left_out_of_the_shares():
    numbers = np.ones((6, 40), np.float32)
    numbers[0, :7] = 1e5  # too large for FP16
    run = run_chain(ROUND_TRIP, formats={"again": "fp16"}, product=PRODUCT, inputs={"x": numbers})
    assert run.blame.broken == {"y": {"storage of again": 7}}
    assert set(run.blame.shares["y"].values()) == {0.0}
    assert "storage of again makes 7 elements infinite or NaN" in str(run)
    assert "again: 0 NaN and 7 infinities on one side only, of 240" in str(run)


@pytest.mark.parametrize("formats", [{"all": "fp16"}, {"y": "tf32", "w": "bf16"}])
def test_lines_of_a_step_add_up_to_the_step(formats):
    blame = run_chain(small(), formats=formats, product=PRODUCT, lines=True).blame
    for output, steps in blame.lines.items():
        assert steps.keys() == {"norm", "head", "bce"}
        for step, lines in steps.items():
            assert sum(lines.values()) == pytest.approx(blame.by_step(output)[step], abs=1e-6)


def test_lines_are_those_that_round_and_the_casts_of_a_step():
    blame = run_chain(small(), formats={"y": "tf32"}, product=PRODUCT, blame=False, lines="norm").blame
    lines = blame.lines["logits"]
    assert lines.keys() == {"norm"}
    assert max(lines["norm"], key=lines["norm"].get) == CAST.format("y", "tf32")
    assert any("forward.py:" in place for place in lines["norm"])


def test_lines_of_earlier_launches_of_an_operator_share_their_part():
    head = ChainStep("head", "matmul", {"a": "y", "b": "w"}, {"out": "logits"}, tiling={"split_k": 2})
    chain = small(inputs=PARTS["inputs"][:3], steps=(PARTS["steps"][0], head), outputs=("logits",))
    blame = run_chain(chain, {"rows": 16, "cols": 128}, product=PRODUCT, lines=["head"]).blame
    lines = blame.lines["logits"]["head"]
    files = {place.rpartition("/")[2].partition(":")[0] for place in lines}
    assert files == {"tiles.py", "sums.py"}
    assert sum(lines.values()) == pytest.approx(blame.by_step("logits")["head"], abs=1e-6)
