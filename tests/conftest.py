"""How much the tests draw, and what those do that need an extra.

The usual run draws: 4 examples of every hypothesis test, the same in every run, and of a test with the mark
`drawn(n)` n of its cases. `pytest -m exhaustive` runs the other cases, and hypothesis tests with many more
examples, the same ones again in every run.
"""

import gc
from collections import defaultdict
from collections.abc import Iterator
from zlib import crc32

import pytest
from hypothesis import settings

import ascendtile.simulator as sim

# No example is judged by how long it takes: on a busy machine any of them may take seconds. They are the same in every run:
# a commit is not to fail by chance.
settings.register_profile("usual", deadline=None, max_examples=4, derandomize=True)
settings.register_profile("exhaustive", deadline=None, max_examples=150, derandomize=True)


def is_exhaustive(config):
    return "exhaustive" in config.option.markexpr.replace("not exhaustive", "")


def pytest_configure(config):
    settings.load_profile("exhaustive" if is_exhaustive(config) else "usual")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config, items):
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("drawn"):
            cases[item.nodeid.partition("[")[0]].append(item)
        elif (
            is_exhaustive(config) and hasattr(item.obj, "hypothesis") and not item.get_closest_marker("long")
        ):
            item.add_marker("exhaustive")
    for group in cases.values():
        for item in not_drawn(group, group[0].get_closest_marker("drawn").args[0]):
            item.add_marker("exhaustive")


def pytest_collection_finish():
    gc.freeze()  # what the collection made stays until the end: no need to look through it for garbage
    gc.set_threshold(20_000, 20)


def not_drawn(cases, count):
    """What is left of the cases when `count` are drawn: always the same ones, first those with the most new values."""
    left = sorted(cases, key=lambda item: crc32(item.nodeid.encode()))
    values = {item: set(item.callspec.indices.items()) for item in left}
    seen = set()
    for _ in range(min(count, len(left))):
        case = max(left, key=lambda item: len(values[item] - seen))
        seen |= values[case]
        left.remove(case)
    return left


def pytest_runtest_setup(item):
    for mark in item.iter_markers("extra"):
        for module in mark.args:
            pytest.importorskip(module, reason=f"no {module}, which comes with an extra: see tests/README.md")


@pytest.fixture(scope="module", autouse=True)
def frozen() -> None:
    """What the modules before left (millions of objects: programs are kept) is not looked through again and again."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def bytecode_of_children() -> Iterator[None]:
    """Processes that tests start keep their bytecode, as on most machines: to compile each anew takes half of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield


@pytest.fixture(scope="module")
def cold_l2() -> Iterator[None]:
    """Nothing in L2 when a launch starts, for laws of what then comes from memory."""
    with sim.device(l2="cold"):
        yield
