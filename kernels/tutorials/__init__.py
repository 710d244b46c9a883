"""Eight kernels to learn from, each a module with the kernel, a function that launches it, and a demonstration.

In the order to read them: vector_add, softmax, matmul, dropout, layer_norm, attention, attention_backward,
grouped_matmul. `python -m ascendtile.kernels.tutorials.softmax` runs one, checks it against float64 and prints
what the run costs.
"""

from ascendtile._names import public_names

__all__ = [
    "attention", "attention_backward", "dropout", "grouped_matmul", "layer_norm", "matmul", "softmax",
    "vector_add",
]  # fmt: skip
__getattr__, __dir__ = public_names(__name__, (), __all__)
