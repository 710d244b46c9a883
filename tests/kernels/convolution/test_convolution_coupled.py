"""On coupled cores sums leave L0C through UB: what is chosen by rule fits there, and float32 is refused in words."""

import pytest

from ascendtile.kernels import run_op
from ascendtile.simulator.errors import RefusedError


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("op", "case", "product"),
    [
        ("convolution", "resnet50-l2-3x3", "ascend910a"),
        ("convolution", "resnet50-l2-3x3", "ascend310p"),
        ("convolution_backward", "resnet50-l2-3x3", "ascend910a"),
        ("convolution_backward", "dcgan-up", "ascend310p"),
    ],
)
def test_tiles_chosen_by_rule_fit_in_ub(op, case, product):
    run = run_op(op, case=case, product=product, dtype="float16", values=False).run
    for launch in run.launches:
        assert launch.buffers["UB"].peak_bytes <= launch.buffers["UB"].capacity_bytes


@pytest.mark.parametrize("product", ["ascend910a", "ascend310p"])
def test_a_forward_convolution_in_float32_is_refused_as_its_gradients_are(product):
    with pytest.raises(RefusedError, match=f"KEEP_DTYPE with float32 on {product}: .* take cubeMathType"):
        run_op("convolution", case="tiny", product=product, dtype="float32", values=False)
    run_op(
        "convolution", case="tiny", product=product, dtype="float32", values=False, cube_math_type="USE_FP16"
    )
