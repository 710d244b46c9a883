"""Values of large tensors at positions only: inputs that lie in little memory, launches of which parts are computed, and
the reference there.
"""
