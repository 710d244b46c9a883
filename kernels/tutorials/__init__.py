"""Eight kernels to learn from, each a module with the kernel, a function that launches it, and a demonstration.

In the order to read them: vector_add, softmax, matmul, dropout, layer_norm, attention, attention_backward,
grouped_matmul. `python -m ascendtile.kernels.tutorials.softmax` runs one, checks it against float64 and prints
what the run costs.
"""
