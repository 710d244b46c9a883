"""The end of a network: RMS normalisation, a product with the weights of the classes, binary cross-entropy."""

from ..chain import Chain, ChainInput, ChainStep

CHAIN = Chain(
    name="norm_loss",
    title="RMS norm, product, binary cross-entropy",
    sizes={"rows": 128, "cols": 512, "classes": 128},
    inputs=(
        ChainInput("x", ("rows", "cols")),
        ChainInput("gamma", ("cols",), draw="normal", scale=0.1, center=1.0),
        ChainInput("w", ("cols", "classes"), draw="normal", fan="cols"),
        ChainInput("target", ("rows", "classes"), draw="labels"),
    ),
    steps=(
        ChainStep("norm", "rms_norm", {"x": "x", "gamma": "gamma"}, {"y": "y"}),
        ChainStep("head", "matmul", {"a": "y", "b": "w"}, {"out": "logits"}),
        ChainStep("bce", "bce_with_logits", {"x": "logits", "target": "target"}, {"out": "loss"}),
    ),
    outputs=("logits", "loss"),
    groups={"weights": ("gamma", "w"), "activations": ("x", "y", "logits")},
)
