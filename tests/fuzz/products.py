"""Target of product files: shipped ones, and those of a user that change some figures."""

from __future__ import annotations

import json
from typing import Any

from ascendtile.simulator.products import load_product, loading, product_names

from .judge import Bench, Finding
from .mutators import HOSTILE, NUMBERS, Chance, mutated_bytes, mutated_lines
from .values import near


def product_toml(chance: Chance, bench: Bench) -> None:
    """A shipped file, or one of a user that changes some figures, then what is asked of a product."""
    path = bench.file("mine.toml", _product_text(chance))
    if bench.command("products", path, *chance.one_of((), ("--json",), ("--assumed",))).status:
        return
    sizes = chance.one_of(("m=48", "n=32", "k=64"), ("m=129", "n=65", "k=33"), ("m=1", "n=1", "k=1"))
    calls: list[tuple[Any, ...]] = [
        ("rms_norm_grad", "--case", "tiny"),
        ("matmul", "--size", *sizes),
        ("matmul", "--size", *sizes, "--dtype", "float32"),
    ]
    calls += [("bce_with_logits", "--case", "tiny"), ("rms_norm_grad", "--case", "tiny", "--explain")]
    for call in chance.sample(calls, 2):
        told = bench.command("run", *call, "--product", path, "--json", *chance.one_of((), ("--no-values",)))
        if told.status == 0:
            _sane_time(json.loads(told.out))


def _sane_time(told: Any) -> None:
    if not 0 <= told["time_us"] < 1e15:
        raise Finding(f"a time of {told['time_us']} us")


def _product_text(chance: Chance) -> bytes:
    way = chance.randrange(6)
    shipped = (loading.FOLDER / f"{chance.choice(product_names())}.toml").read_text()
    if way == 0:
        return mutated_bytes(chance, shipped.encode())
    if way == 1:
        return mutated_lines(chance, shipped).encode(errors="surrogatepass")
    text = _changed_figures(chance)
    return (
        mutated_lines(chance, text).encode(errors="surrogatepass")
        if way == 2
        else text.encode(errors="surrogatepass")
    )


def _changed_figures(chance: Chance) -> str:
    """A file with a base; the figures keep their units."""
    base = load_product(chance.one_of("ascend910b3", "ascend910b3", "ascend310p", *product_names()))
    lines = (
        [f'base = "{base.name}"']
        if chance.once_in(9) is False
        else [f'base = "{chance.choice(product_names())}"']
    )
    if chance.once_in(8):
        lines.append(f"without = {json.dumps(chance.sample(list(base.keys()), 2))}")
    for key in chance.sample(list(base.keys()), chance.few()):
        f = base.figure(key)
        table, _, name = key.rpartition(".")
        entry = {
            "value": _toml(_other_figure(chance, f.value)), "unit": json.dumps(f.unit),
            "source": _toml(chance.one_of("me", chance.choice(HOSTILE))), "grade": '"D"',
        }  # fmt: skip
        if chance.once_in(6):
            entry[chance.one_of("low", "high", "note", "value", "unit")] = _toml(
                chance.choice((*NUMBERS, *HOSTILE))
            )
        text = ", ".join(f"{n} = {x}" for n, x in entry.items())
        lines.append(f"[{table}]\n{name} = {{ {text} }}" if table else f"{name} = {{ {text} }}")
        chance.note(f"{key}: {f.value!r:.80} -> {entry['value']:.80}")
    return "\n".join(lines) + "\n"


def _other_figure(chance: Chance, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        if isinstance(value, tuple | list) and value:
            return chance.one_of(
                [],
                list(value)[:1],
                list(value)[::-1],
                [*value, value[0]],
                [near(chance, x) if isinstance(x, int | float) else x for x in value],
            )
        if isinstance(value, dict) and value:
            return {n: _other_figure(chance, x) if chance.once_in(2) else x for n, x in value.items()}
        return chance.one_of(value, chance.choice(HOSTILE), not value)
    return chance.one_of(
        near(chance, value),
        value * 2,
        value // 2 if isinstance(value, int) else value / 2,
        value / 7,
        1,
        0,
        type(value)(value * 0.9),
    )


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(n)} = {_toml(x)}" for n, x in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)
