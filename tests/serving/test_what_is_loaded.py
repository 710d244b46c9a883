"""What serving needs is loaded by `ascendtile serve` alone, and the tools themselves need none of it."""

import ast
import subprocess
import sys

from ..support.import_graph import imports, name_of, sources

OF_THE_EXTRA = {"mcp", "mcp_types", "starlette", "uvicorn", "jsonschema", "anyio"}
SERVING = "reports.serving."


def needs_the_extra(path):
    found = {name.partition(".")[0] for dots, name, _ in imports(path) if not dots}
    tree = ast.parse(path.read_text())
    found |= {a.name.partition(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    return bool(found & OF_THE_EXTRA)


def test_only_the_server_imports_what_the_extra_brings():
    found = {name_of(p) for p in sources(".py") if needs_the_extra(p)}
    assert found  # those of the server itself
    assert all(name.startswith(SERVING) and not name.startswith(f"{SERVING}tools") for name in found)


def test_listing_the_tools_loads_neither_numpy_nor_the_extra():
    modules = "ascendtile.reports.serving.tools.catalogue, ascendtile.reports.cli.commands.judging.serve"
    code = f"import sys, {modules}; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {name.partition(".")[0] for name in out.split()} & (OF_THE_EXTRA | {"numpy", "torch"})
