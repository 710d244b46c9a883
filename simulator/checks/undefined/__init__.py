"""Elements of tiles that nobody gave a value: a second program of truth values beside the kernel's, as in MemorySanitizer.

`taint.py` finds the values that may hold such elements: what comes from a load with a mask and no `other`, and from a
buffer that was not wholly written. `instrument.py` writes for each of them an operation that computes which of its
elements are defined, out of the same few kinds of operations as far as these move elements only, so that loops, branches
and cores treat them as any other tile. `rules.py` evaluates the others; `watch.py` asks what must be defined: what is
stored, where, under which mask, and what a branch asks. Lanes that are computed with and never get there are no fault:
`tl.store` under the mask of the load, a row that is reduced for nothing and not stored.
"""
