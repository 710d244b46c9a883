"""Train a small network in numpy and keep what the weight gradient of its hidden layer is made of.

    python -m ascendtile.kernels.examples.train_tiny --out gradients.npz
    ascendtile precision matmul --input gradients.npz

The network (64 -> 256 -> 256 -> 10, ReLU, softmax) learns which of ten random teachers says most about a point; plain
stochastic gradient descent, a few hundred steps. The file has `a`, the activations of the first hidden layer transposed
(256, batch), and `b`, the gradient of the loss by the second layer's result (batch, 256), both float32: their product is
the gradient of the second layer's weights. b is small, uneven and partly zero, as gradients are, and no random numbers are.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...simulator.errors import AscendtileError
from ...simulator.record.files import check_target

Floats = NDArray[np.float32]

FEATURES, HIDDEN, CLASSES, BATCH = 64, 256, 10, 512
RATE = np.float32(0.2)


def batches(generator: np.random.Generator, steps: int) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
    """Points (BATCH, FEATURES) and the number of the teacher that says most about each."""
    teachers = generator.standard_normal((FEATURES, CLASSES), np.float32)
    for _ in range(steps):
        x = generator.standard_normal((BATCH, FEATURES), np.float32)
        yield x, np.argmax(x @ teachers, axis=1)


def initial_weights(generator: np.random.Generator) -> list[Floats]:
    """He's initialisation, float32."""
    sizes = (FEATURES, HIDDEN, HIDDEN, CLASSES)
    shapes = pairwise(sizes)
    return [generator.standard_normal((m, n), np.float32) * np.float32(np.sqrt(2 / m)) for m, n in shapes]


def forward(x: Floats, weights: Sequence[Floats]) -> tuple[list[Floats], Floats]:
    """Inputs of every layer, and the probability of every class."""
    inputs = [x]
    for weight in weights[:-1]:
        inputs.append(np.maximum(inputs[-1] @ weight, 0))
    scores = inputs[-1] @ weights[-1]
    scores -= scores.max(axis=1, keepdims=True)
    odds = np.exp(scores)
    return inputs, odds / odds.sum(axis=1, keepdims=True)


def backward(
    inputs: Sequence[Floats], odds: Floats, labels: NDArray[np.int64], weights: Sequence[Floats]
) -> list[Floats]:
    """Gradient of the mean loss by the result of every layer before its ReLU, first layer first."""
    gradient = odds.copy()
    gradient[np.arange(len(labels)), labels] -= 1
    found = [gradient / np.float32(len(labels))]
    for layer in range(len(weights) - 1, 0, -1):
        found.append((found[-1] @ weights[layer].T) * (inputs[layer] > 0))
    return found[::-1]


def train(steps: int = 300, seed: int = 0) -> tuple[dict[str, Floats], list[float]]:
    """Inputs of `matmul` from the last step, and the mean loss of every step."""
    generator = np.random.default_rng(seed)
    weights, losses, kept = initial_weights(generator), [], {}
    for x, labels in batches(generator, steps):
        inputs, odds = forward(x, weights)
        gradients = backward(inputs, odds, labels, weights)
        losses.append(float(-np.log(odds[np.arange(BATCH), labels] + 1e-30).mean()))
        kept = {"a": np.ascontiguousarray(inputs[1].T), "b": np.ascontiguousarray(gradients[1])}
        for weight, entering, gradient in zip(weights, inputs, gradients, strict=True):
            weight -= RATE * (entering.T @ gradient)
    return kept, losses


def main() -> None:
    """Train, and write the file."""
    parser = argparse.ArgumentParser(description="Train a small network and keep a layer's gradient as .npz")
    parser.add_argument("--out", default="gradients.npz")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.steps < 1:
        parser.error(f"--steps must be at least 1, got {asked.steps}")
    if asked.seed < 0:
        parser.error(f"--seed must be at least 0, got {asked.seed}")
    try:
        check_target(asked.out)
        kept, losses = train(asked.steps, asked.seed)
        np.savez(asked.out, a=kept["a"], b=kept["b"])
    except (AscendtileError, OSError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        parser.exit(130, "error: interrupted\n")
    shapes = ", ".join(f"{n} {x.shape}" for n, x in kept.items())
    print(f"{asked.steps} steps: loss {losses[0]:.3f} to {losses[-1]:.3f}; {shapes} in {asked.out}")


if __name__ == "__main__":
    main()
