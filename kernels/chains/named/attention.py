"""Attention as a layer has it: products that make queries, keys and values, attention over each head, a product, a sum."""

from ..chain import Chain, ChainInput, ChainStep, Dims, ReshapedTensor

HEADS: Dims = (1, "tokens", "heads", "dim")  # a row of `width` = heads x dim, seen apart


def _apart(name: str) -> tuple[ChainStep, ChainStep]:
    """The product that makes queries, keys or values, and the launch that brings the heads before the tokens."""
    product = ChainStep(f"make_{name}", "matmul", {"a": "x", "b": f"w_{name}"}, {"out": f"{name}_rows"})
    view = ReshapedTensor(f"{name}_rows", HEADS)
    moved = ChainStep(f"move_{name}", "permute", {"x": view}, {"out": name}, {"axes": (0, 2, 1, 3)})
    return product, moved


CHAIN = Chain(
    name="attention",
    title="products for q, k and v, flash attention, product, residual",
    sizes={"tokens": 128, "width": 128, "heads": 2, "dim": 64},
    inputs=(
        ChainInput("x", ("tokens", "width")),
        *(
            ChainInput(f"w_{n}", ("width", "width"), draw="normal", fan="width")
            for n in ("q", "k", "v", "out")
        ),
    ),
    steps=(
        *(step for n in "qkv" for step in _apart(n)),
        ChainStep(
            "attend", "flash_attention", {"q": "q", "k": "k", "v": "v"}, {"out": "mixed"}, {"causal": 1}
        ),
        ChainStep("move_out", "permute", {"x": "mixed"}, {"out": "mixed_rows"}, {"axes": (0, 2, 1, 3)}),
        ChainStep(
            "project",
            "matmul",
            {"a": ReshapedTensor("mixed_rows", ("tokens", "width")), "b": "w_out"},
            {"out": "change"},
        ),
        ChainStep("residual", "scaled_add", {"a": "x", "b": "change"}, {"out": "y"}),
    ),
    outputs=("y",),
    groups={
        "weights": ("w_q", "w_k", "w_v", "w_out"),
        "heads_in": ("q_rows", "k_rows", "v_rows", "q", "k", "v"),
        "heads_out": ("mixed", "mixed_rows"),
        "stream": ("x", "change", "y"),
        "projections": ("make_q", "make_k", "make_v", "project"),
    },
)
