"""The feed-forward part of a layer: two products, SwiGLU, a product."""

from ..chain import Chain, ChainInput, ChainStep

CHAIN = Chain(
    name="mlp",
    title="two products, SwiGLU, product",
    sizes={"tokens": 64, "hidden": 256, "inner": 512},
    inputs=(
        ChainInput("x", ("tokens", "hidden")),
        ChainInput("w_gate", ("hidden", "inner"), draw="normal", fan="hidden"),
        ChainInput("w_up", ("hidden", "inner"), draw="normal", fan="hidden"),
        ChainInput("w_down", ("inner", "hidden"), draw="normal", fan="inner"),
    ),
    steps=(
        ChainStep("make_gate", "matmul", {"a": "x", "b": "w_gate"}, {"out": "gate"}),
        ChainStep("make_up", "matmul", {"a": "x", "b": "w_up"}, {"out": "up"}),
        ChainStep("activate", "swiglu", {"gate": "gate", "up": "up"}, {"out": "h"}),
        ChainStep("make_y", "matmul", {"a": "h", "b": "w_down"}, {"out": "y"}),
    ),
    outputs=("y",),
    groups={
        "weights": ("w_gate", "w_up", "w_down"),
        "activations": ("x", "gate", "up", "h"),
        "first": ("make_gate", "make_up"),
    },
)
