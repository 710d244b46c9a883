"""`python -m tests.golden write|compare [PART]`: all cases, or those whose name has PART in it."""

from __future__ import annotations

import sys

from .cases import all_cases
from .golden import differences, observe, read, write


def main(what: str = "compare", part: str = "") -> int:
    """Writes the figures, or prints every difference; exit status 1 if there is one."""
    cases = {n: c for n, c in all_cases().items() if part in n}
    now = {n: observe(c) for n, c in cases.items()}
    launches = sum(len(x.get("launches", ())) for x in now.values())
    print(f"{len(now)} cases, {launches} launches", file=sys.stderr)
    if what == "write":
        write({**(read() if part else {}), **now})
        return 0
    was = {n: x for n, x in read().items() if part in n}
    found = list(differences(was, now))
    print("\n".join(found) or "no difference")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
