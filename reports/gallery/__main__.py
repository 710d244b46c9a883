"""Makes the pictures of the README anew: `python -m ascendtile.reports.gallery [FOLDER]`, in less than a minute.

What the command line prints for a run, the top of its HTML report (where playwright and a Chromium are installed), and
pictures of a run, an exploration, precision studies and a chain.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from ascendtile.kernels import precision_study, run_op
from ascendtile.kernels.chains import run_chain
from ascendtile.reports import pictures
from ascendtile.reports.html import write_page
from ascendtile.reports.terminal.record_view import run_report
from ascendtile.simulator.record.run import Run
from ascendtile.tiling import explore

FORMAT_MODES = ("KEEP_DTYPE", "USE_HF32", "splits")
HERE = Path(__file__).resolve().parent
OP, CASE, DTYPE = "rms_norm_grad", "llama3-8b", "bfloat16"
SPACE = {"buffers": 2, "group": 1, "split_k": 1, "schedule": "persistent", "block_m": (64, 128, 256)}


def terminal(run: Run, folder: Path) -> Path:
    """The page of the run as an SVG file."""
    console = Console(
        record=True, width=80, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(run_report(run))
    path = folder / f"{OP}.svg"
    title = f"ascendtile run {OP} --case {CASE} --dtype {DTYPE}"
    path.write_text(without_web_fonts(console.export_svg(title=title)))
    return path


def without_web_fonts(svg: str) -> str:
    """The picture uses the reader's own fixed-width font: it opens offline and asks nobody for anything."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)


def report(run: Run, folder: Path) -> Path | None:
    """The top of the HTML report as a browser shows it; None where there is no browser to ask."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        browser = None
    if browser is None:
        return None
    path = folder / "report.png"
    with tempfile.TemporaryDirectory() as at, sync_playwright() as p:
        write_page(run, Path(at) / "report.html")
        tab = p.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"]).new_page(
            viewport={"width": 1180, "height": 980}
        )
        tab.goto((Path(at) / "report.html").as_uri())
        tab.wait_for_selector(".timeline[data-ready=whole]")
        tab.screenshot(path=path)
    return path


def drawn(run: Run, folder: Path) -> Iterator[Path]:
    """Pictures by matplotlib."""
    matmul = run_op("matmul", case="1024", dtype="float16", values=False).run
    study = precision_study("matmul", sizes={"m": 256, "n": 256, "k": 512})
    formats = precision_study("matmul", "1024", dtypes="all,formats", modes=FORMAT_MODES, sample=128)
    made = {
        "roofline": pictures.roofline(matmul),
        "errors": pictures.error_histogram(run),
        "heatmap": pictures.heat_map(
            explore("matmul", case="1024", dtype="float16", space=SPACE), "block_k", "block_n"
        ),
        "precision": pictures.precision_bars(study),
        "formats": pictures.precision_front(formats),
        "chain": pictures.chain_blame(run_chain("mlp", formats={"all": "fp16", "h": "hif8"})),
    }
    for name, figure in made.items():
        pictures.save(figure, folder / f"{name}.png")
        yield folder / f"{name}.png"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    run = run_op(OP, case=CASE, dtype=DTYPE, explain=True).run
    print(terminal(run, folder))
    print(report(run, folder) or "no browser: report.png is left as it is")
    for path in drawn(run, folder):
        print(path)


if __name__ == "__main__":
    main()
