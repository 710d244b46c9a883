"""One step of the training of `examples/train_tiny.py`: forward, loss, gradients, and new weights.

The network there (features -> hidden -> hidden -> classes, ReLU, softmax), its first weights and its rate; points are noise,
and their classes are drawn.
"""

from ...examples.train_tiny import BATCH, CLASSES, FEATURES, HIDDEN, RATE
from ..chain import Chain, ChainInput, ChainStep

LAYERS = ("1", "2", "3")
ROOT_OF_TWO = 2.0**0.5  # He's initialisation: a deviation of sqrt(2 / inputs of the layer)


def _forward() -> tuple[ChainStep, ...]:
    first = ChainStep("forward_1", "matmul", {"a": "x", "b": "w1"}, {"out": "z1"})
    second = ChainStep("forward_2", "matmul", {"a": "h1", "b": "w2"}, {"out": "z2"})
    third = ChainStep("forward_3", "matmul", {"a": "h2", "b": "w3"}, {"out": "scores"})
    relus = (ChainStep(f"relu_{n}", "relu", {"x": f"z{n}"}, {"out": f"h{n}"}) for n in "12")
    loss = ChainStep(
        "softmax",
        "softmax_loss",
        {"scores": "scores", "labels": "labels"},
        {"loss": "loss", "dscores": "dz3"},
    )
    return first, second, third, *relus, loss


def _backward() -> tuple[ChainStep, ...]:
    """Gradients by the results of the hidden layers, from the last one back."""
    out = []
    for n, behind in (("2", "3"), ("1", "2")):
        turned = ChainStep(f"turn_w{behind}", "permute", {"x": f"w{behind}"}, {"out": f"w{behind}_turned"})
        by_h = ChainStep(
            f"backward_{n}", "matmul", {"a": f"dz{behind}", "b": f"w{behind}_turned"}, {"out": f"dh{n}"}
        )
        by_z = ChainStep(f"unrelu_{n}", "relu_backward", {"dy": f"dh{n}", "y": f"h{n}"}, {"out": f"dz{n}"})
        out += [turned, by_h, by_z]
    return tuple(out)


def _update() -> tuple[ChainStep, ...]:
    """Gradients by the weights, and the weights after one step down."""
    out = []
    for n, entering in zip(LAYERS, ("x", "h1", "h2"), strict=True):
        turned = ChainStep(f"turn_{entering}", "permute", {"x": entering}, {"out": f"{entering}_turned"})
        gradient = ChainStep(
            f"gradient_{n}", "matmul", {"a": f"{entering}_turned", "b": f"dz{n}"}, {"out": f"dw{n}"}
        )
        step = ChainStep(
            f"update_{n}",
            "scaled_add",
            {"a": f"w{n}", "b": f"dw{n}"},
            {"out": f"new_w{n}"},
            {"scale": -float(RATE)},
        )
        out += [turned, gradient, step]
    return tuple(out)


CHAIN = Chain(
    name="train_step",
    title="one step of train_tiny: forward, loss, gradients, new weights",
    sizes={"batch": BATCH, "features": FEATURES, "hidden": HIDDEN, "classes": CLASSES},
    inputs=(
        ChainInput("x", ("batch", "features")),
        ChainInput("labels", ("batch", "classes"), draw="one_hot"),
        ChainInput("w1", ("features", "hidden"), draw="normal", scale=ROOT_OF_TWO, fan="features"),
        ChainInput("w2", ("hidden", "hidden"), draw="normal", scale=ROOT_OF_TWO, fan="hidden"),
        ChainInput("w3", ("hidden", "classes"), draw="normal", scale=ROOT_OF_TWO, fan="hidden"),
    ),
    steps=(*_forward(), *_backward(), *_update()),
    outputs=("loss", "new_w1", "new_w2", "new_w3"),
    groups={
        "weights": ("w1", "w2", "w3", "w2_turned", "w3_turned"),
        "new_weights": ("new_w1", "new_w2", "new_w3"),
        "activations": (
            "x",
            "z1",
            "h1",
            "z2",
            "h2",
            "scores",
            "x_turned",
            "h1_turned",
            "h2_turned",
            "labels",
        ),
        "gradients": ("dz3", "dh2", "dz2", "dh1", "dz1", "dw1", "dw2", "dw3"),
        "forward": ("forward_1", "forward_2", "forward_3"),
        "backward": ("backward_1", "backward_2", "gradient_1", "gradient_2", "gradient_3"),
    },
)
