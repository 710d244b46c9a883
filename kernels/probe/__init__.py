"""Experiments that tell how the Cube and the Vector unit of a board compute, and the reader of what they gave.

write_probe("probe")                     # a folder for the board: at most 200 kernels and their inputs
findings = read_probe("probe")           # after run_probe.py filled probe/results
findings.choices                         # {"cube_block_k": "fp16=16,...", ...}, for `numerics=` of a device
"""

from .findings import ProbeAnswer, ProbeFindings
from .results import read_probe
from .writing import write_probe

__all__ = ["ProbeAnswer", "ProbeFindings", "read_probe", "write_probe"]
