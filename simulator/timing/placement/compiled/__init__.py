"""Buffers of a kernel as the compiler of Triton-Ascend places them (AscendNPU-IR at commit 52f96a13; A2 and A3).

Numbers in brackets are those of the rules, in the order of the compiler's work: which values become tiles (7, `demand.py`),
which axis two Vector cores share (5, `../shared_rows/`), operations as steps on buffers (5, 6, 8: `expansion.py` and the
rules), scratch (10), padding (9, `spreading.py`), lives and what is one buffer (3.3 to 3.12, `plan.py`), copies (4),
addresses (3.13 to 3.21, `levels.py`), the second tries (4.8, `place.py`).
"""
