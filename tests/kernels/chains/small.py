"""Small chains for tests."""

from __future__ import annotations

from ascendtile.kernels.chains import Chain, ChainInput, ChainStep, ReshapedTensor

PARTS = {
    "name": "small",
    "title": "a norm, a product and a loss",
    "sizes": {"rows": 32, "cols": 64, "classes": 48},
    "inputs": (
        ChainInput("x", ("rows", "cols")),
        ChainInput("gamma", ("cols",), draw="normal", scale=0.1, center=1.0),
        ChainInput("w", ("cols", "classes"), fan="cols"),
        ChainInput("target", ("rows", "classes"), draw="labels"),
    ),
    "steps": (
        ChainStep("norm", "rms_norm", {"x": "x", "gamma": "gamma"}, {"y": "y"}),
        ChainStep("head", "matmul", {"a": "y", "b": "w"}, {"out": "logits"}),
        ChainStep("bce", "bce_with_logits", {"x": "logits", "target": "target"}, {"out": "loss"}),
    ),
    "outputs": ("logits", "loss"),
    "groups": {"weights": ("gamma", "w")},
}


def small(**changed) -> Chain:
    """The chain, with some fields changed."""
    return Chain(**{**PARTS, **changed})


ROUND_TRIP = Chain(
    name="round_trip",
    title="axes there and back, and a sum with itself",
    sizes={"rows": 6, "cols": 40},
    inputs=(ChainInput("x", ("rows", "cols")),),
    steps=(
        ChainStep("there", "permute", {"x": "x"}, {"out": "turned"}),
        ChainStep("back", "permute", {"x": ReshapedTensor("turned", ("cols", "rows"))}, {"out": "again"}),
        ChainStep("twice", "scaled_add", {"a": "x", "b": "again"}, {"out": "y"}),
    ),
    outputs=("y",),
)
