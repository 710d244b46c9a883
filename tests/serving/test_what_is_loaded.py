"""What serving needs is loaded by `ascendtile serve` alone, and the tools themselves need none of it."""

import re
import subprocess
import sys

from ..support.import_graph import name_of, sources

OF_THE_EXTRA = {"mcp", "mcp_types", "starlette", "uvicorn", "jsonschema", "anyio"}
SERVING = "reports.serving."
IMPORT = re.compile(rf"^ *(?:from|import) +(?:{'|'.join(OF_THE_EXTRA)})\b", re.M)


def test_only_the_server_imports_what_the_extra_brings():
    found = {name_of(p) for p in sources(".py") if IMPORT.search(p.read_text())}
    assert found  # those of the server itself
    assert all(name.startswith(SERVING) and not name.startswith(f"{SERVING}tools") for name in found)


def test_listing_the_tools_loads_neither_numpy_nor_the_extra():
    modules = "ascendtile.reports.serving.tools.catalogue, ascendtile.reports.cli.commands.judging.serve"
    code = f"import sys, {modules}; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {name.partition(".")[0] for name in out.split()} & (OF_THE_EXTRA | {"numpy", "torch"})
