"""Makes the pictures of the README anew: `python -m ascendtile.reports.gallery [FOLDER]`.

Each picture is what the command line prints for a run, as an SVG.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from ascendtile.kernels import run_op
from ascendtile.reports.terminal import run_report

HERE = Path(__file__).resolve().parent
RUNS = {"rms_norm_grad": {"case": "llama3-8b", "dtype": "bfloat16"}}


def draw(name: str, folder: Path) -> Path:
    """The page of one run as an SVG file."""
    options = RUNS[name]
    run = run_op(name, case=options["case"], dtype=options["dtype"], explain=True).run
    console = Console(
        record=True, width=80, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(run_report(run))
    path = folder / f"{name}.svg"
    title = f"ascendtile run {name} --case {options['case']} --dtype {options['dtype']}"
    path.write_text(without_web_fonts(console.export_svg(title=title)))
    return path


def without_web_fonts(svg: str) -> str:
    """The picture uses the reader's own fixed-width font: it opens offline and asks nobody for anything."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name in RUNS:
        print(draw(name, folder))


if __name__ == "__main__":
    main()
