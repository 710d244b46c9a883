"""With install() alone nobody prints a page: what makes values doubtful reaches the user as a Python warning."""

import subprocess
import sys

SCRIPT = """
from ascendtile.simulator import triton_shim
triton_shim.install()
import numpy as np, triton, triton.language as tl

@triton.jit
def race(o):
    x, y = 1, 2, 3
    tl.store(o, tl.program_id(0) + x + y)

@triton.jit
def outside(o):
    tl.store(o + 7, 1.0)

out = np.zeros(1, np.float32)
for _ in range(2):
    run = race[(4,)](out)
print(out[0], [w for w in run.warnings if "3 values for 2 names" in w] != [])
outside[(1,)](out)
"""


def test_a_script_is_warned_once_and_an_error_shows_few_frames(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    assert done.stdout == "6.0 True\n"
    assert done.stderr.count("KernelWarning") == 1
    assert f"{path}:9: KernelWarning: programs 0 and 1 both store to element 0 of 'o'" in done.stderr
    assert done.stderr.count('File "') <= 3
    assert "out of bounds" in done.stderr.splitlines()[-3]
