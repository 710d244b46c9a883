"""Files that a request names: below one folder that the user opened with `--root`, and nowhere else.

The server reads them and hands their text on; what runs sees the text only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...simulator.errors import UsageError
from .tools.tool import MOST_FILES, MOST_TEXT, Arguments, Tool

DATA = (".json", ".jsonl")  # cases of a task stand beside it under its name


def resolved(tool: Tool, arguments: Arguments, root: Path | None) -> dict[str, Any]:
    """The arguments with texts in the place of paths. `UsageError`: outside of the folder, too large, no text."""
    found = dict(arguments)
    for name, stands_for in (tool.paths or {}).items():
        if name not in found:
            continue
        if stands_for in found:
            raise UsageError(f"{name} and {stands_for} are two ways to give one file; leave one of them out")
        path = inside(root, str(found.pop(name)), name)
        found[stands_for] = read_text(path, name)
        if stands_for == "task":
            found["files"] = {**_data_of(path), **found.get("files", {})}
    return found


def inside(root: Path | None, given: str, name: str) -> Path:
    """The path, links followed, which must be in the folder."""
    if root is None:
        raise UsageError(f"{name}: this server reads no files; give the text, or start it with --root FOLDER")
    try:
        base = root.resolve(strict=True)
        path = (base / given).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        raise UsageError(f"{name}: there is no file {given!r:.200} in the folder of --root") from None
    if not path.is_relative_to(base) or not path.is_file():
        raise UsageError(f"{name}: {given!r:.200} is no file in the folder of --root")
    return path


def read_text(path: Path, name: str) -> str:
    """At most MOST_TEXT characters of UTF-8."""
    try:
        size = path.stat().st_size
        if size > MOST_TEXT:
            raise UsageError(f"{name}: {path.name} has {size} bytes, at most {MOST_TEXT} are read")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"{name}: cannot read {path.name}: {e}") from None


def _data_of(task: Path) -> Mapping[str, str]:
    """Files of cases beside a task, which it reads by its own name."""
    beside = (task.with_suffix(ending) for ending in DATA)
    return {
        p.name: read_text(p, "task_path")
        for p in list(beside)[:MOST_FILES]
        if p.is_file() and not p.is_symlink()
    }
