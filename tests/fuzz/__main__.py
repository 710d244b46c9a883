"""`python -m tests.fuzz [TARGET ...] [--seconds S] [--first N | --number N]`: every finding is printed."""

from __future__ import annotations

import argparse
import sys

from .judge import Finding
from .play import play, play_for
from .targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; without, all")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="of the processor, for each target [600]"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first input [0]")
    parser.add_argument("--number", type=int, help="this input alone")
    asked = parser.parse_args()
    if unknown := [t for t in asked.targets if t not in TARGETS]:
        parser.error(f"no target {unknown[0]}; there are {', '.join(TARGETS)}")
    found: list[Finding] = []

    def tell(finding: Finding) -> None:
        found.append(finding)
        print(finding, flush=True)

    for target in asked.targets or TARGETS:
        if asked.number is None:
            tally = play_for(target, asked.seconds, asked.first, tell)
            slowest, number = tally.slowest
            print(
                f"{target}: {tally.inputs} inputs, {tally.accepted} accepted, slowest {slowest:.1f} s ({number})",
                flush=True,
            )
        else:
            try:
                print(f"{target} {asked.number}: accepted {play(target, asked.number)} times")
            except Finding as finding:
                tell(finding)
    print(f"{len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
