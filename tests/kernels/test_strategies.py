"""Every strategy of each operator on its named cases, time only: the automatic choice is the fastest or within 5 % of it.

Here a few cases for each operator that differ in what wins; all of them are in tests/bench/test_bench_strategies.py.
"""

from __future__ import annotations

import pytest

from ascendtile.kernels import get_operator, run_op
from ascendtile.simulator.errors import AscendtileError

RMS, BN, GN, CONV = (
    "rms_norm_grad",
    "batch_norm_reduce_backward",
    "group_norm_backward",
    "convolution_backward",
)
BCE = "bce_with_logits_backward"


def strategies(op: str) -> list[dict[str, str]]:
    """Every strategy that can be asked for."""
    knobs = {p.name: p.choices for p in get_operator(op).parameters}
    return [{"strategy": s} for s in knobs["strategy"] if s != "auto"]


# What a user may ask for in place of the choice; knobs that are left out are chosen by rule for each.
ALTERNATIVES = {
    RMS: [*strategies(RMS), {"combine": "two_phase"}, {"combine": "cube"}],
    BN: strategies(BN),
    GN: strategies(GN),
    BCE: [*strategies(BCE), {"buffers": 1}, {"buffers": 3}],
    CONV: [
        *strategies(CONV),
        {"taps": "window"},
        {"taps": "reload"},
        {"launches": "joint"},
        {"launches": "apart"},
        {"combine": "two_phase"},
    ],
}
WITHIN = 1.05
A_FEW = [
    (RMS, "deepseek-v3-kv", "float16"), (RMS, "key-norm", "float32"), (RMS, "deepseek-v3-query", "float16"),
    (RMS, "decode", "bfloat16"), (RMS, "llama2-13b", "float16"), (BN, "projector", "float16"),
    (BN, "resnet50-stage4-out", "float16"), (BN, "pointnet", "float32"), (GN, "sd-unet-1280", "float16"),
    (GN, "sd-unet-2560", "float32"), (GN, "sd-unet-mid", "float32"), (GN, "video-vae", "float16"),
    (BCE, "click-rate", "float16"), (BCE, "chest-xray", "float32"), (BCE, "answers", "float32"),
    (BCE, "segmentation", "float16"), (CONV, "dcgan-up", "float16"),
]  # fmt: skip


def times_of(op: str, case: str, dtype: str) -> tuple[float, dict[str, float]]:
    """Time of the choice, and of each alternative that the case and the buffers allow."""
    chosen = run_op(op, case, dtype, values=False).time_us
    found = {}
    for tiling in ALTERNATIVES[op]:
        try:
            found[" ".join(f"{n}={x}" for n, x in tiling.items())] = run_op(
                op, case, dtype, tiling=tiling, values=False
            ).time_us
        except AscendtileError:  # a strategy that is not for this case, or whose tiles do not fit
            continue
    return chosen, found


def check_choice(op: str, case: str, dtype: str) -> None:
    chosen, found = times_of(op, case, dtype)
    assert len(found) >= 2
    best = min(found, key=found.__getitem__)
    assert chosen <= WITHIN * found[best], f"{chosen:.1f} us, {best} takes {found[best]:.1f} us"


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("op", "case", "dtype"), A_FEW)
def test_the_choice_is_the_fastest_or_within_five_percent(op, case, dtype):
    check_choice(op, case, dtype)
