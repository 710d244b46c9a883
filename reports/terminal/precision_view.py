"""A precision study as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...kernels.study.caveats import lost_below
from ...kernels.study.results import EXACT, GOLDENS, ROUNDED, Answer, ModeRow, Study
from ...simulator.precision.metrics import ErrorReport
from ...simulator.precision.splits import SPLITS
from ..facts.study.lost import KINDS, lost_shares
from ..facts.study.lost import WORDS as LOST
from ..facts.study.names import memory_bits, short_name
from ..facts.study.rows import refusals
from ..facts.study.words import (
    BITS,
    NEED,
    REFERENCES,
    ULP,
    UNDER,
    kept_text,
    knobs_apart,
    rules_text,
    tiling_line,
    tiling_text,
)
from ..facts.texts import clean, figure, micros, share_text
from .sections import numerics_lines
from .tables import fact, folding

_SHORT = {EXACT: "exact", ROUNDED: "round"}
MODE_WIDTH = 15
RULES = ("single-benchmark", "mixed-tolerance")
GOLDEN_MEANINGS = {
    EXACT: "against float64 of the exact inputs: what the mode loses",
    ROUNDED: "against float64 of the inputs as multiplied: what the kernel adds",
}
_LEGEND = (
    "in: data type, or the bits of an element in memory; as: what is multiplied; over: too large for the type; NaN: on one "
    "side only; an element may be both. {} Times include the casts that a mode needs: USE_FP16 with float32 inputs pays for "
    "them."
)
LEGEND = _LEGEND.format("Speed-up: over float32 KEEP_DTYPE.")
SWEEP_LEGEND = _LEGEND.format(
    "Modes that compute the same are one row; rows of the same types have their modes below."
)


# ---- pages ----


def study_page(study: Study) -> RenderableType:
    """Time, bits and verdicts of every row, then all error figures, then what was refused and why."""
    outputs = list(dict.fromkeys(n for row in study.rows for n in row.errors))
    parts: list[RenderableType] = [_heading(study), *_tiling(study), *_answer([study])]
    for name in outputs:
        parts += [Text(), _summary(study, name, len(outputs) > 1), *_front(study, name)]
    parts += _own_tilings(study) + ([Text(), *_legend(study, LEGEND)] if outputs else [])
    for name in outputs:
        parts += _lost(study.rows, name)
        for golden in GOLDENS:
            parts += [Text(f"\n{clean(name)} {GOLDEN_MEANINGS[golden]}"), _figures(study.rows, name, golden)]
    return Group(*parts, *_refused(study.rows), *_remarks(study))


def sweep_page(parameter: str, studies: Sequence[Study]) -> RenderableType:
    """A table for each output with the computations of every point; `--json` has all modes and figures."""
    parts: list[RenderableType] = [_heading(studies[0], parameter), *_answer(studies)]
    words = "the same in all rows" if studies[0].tiling is not None else "each row its own best"
    parts += [fact("tiling", f"{words} of a point; --json and --export csv have it")]
    outputs = list(dict.fromkeys(n for study in studies for row in study.rows for n in row.errors))
    for name in outputs:
        parts += [Text(f"\n{clean(name)}"), _sweep_table(parameter, studies, name)]
    refused = _refused(studies[0].rows)
    return Group(*parts, Text(), *_legend(studies[0], SWEEP_LEGEND), *refused, *_remarks(studies[0]))


def _answer(studies: Sequence[Study]) -> list[RenderableType]:
    """Which mode is enough, where that was asked."""
    if studies[0].need is None:
        return []
    return [fact("answer", clean(Answer(studies).words, 400), style="bold")]


def _tiling(study: Study) -> list[RenderableType]:
    line = tiling_line(study)
    return [fact("tiling", line)] if line else []


def _front(study: Study, name: str) -> list[RenderableType]:
    """Which rows no other one beats in time and bits, where splits of operands are among them."""
    if not any(row.cube_math_type in SPLITS for row in study.rows):
        return []
    told = [f"{r.name} ({_time(r)} us, {figure(r.bits(name))} bits)" for r in study.front(name)]
    return (
        [Text(f"front: no row is both faster and more exact than {'; '.join(map(clean, told))}")]
        if told
        else []
    )


def _own_tilings(study: Study) -> list[RenderableType]:
    """The knobs in which rows differ, where each has its own."""
    names = [] if study.tiling is not None else knobs_apart(study.rows)[1]
    if not names:
        return []
    table = folding(("mode", 25), ("in", 5), ("tiling", 0))
    for row in study.rows:
        if row.tiling:
            cells = (row.cube_math_type, "\n+".join(_inputs(row.dtype)), tiling_text(row.tiling, names))
            table.add_row(*map(Text, cells))
    return [Text(), table]


def _legend(study: Study, words: str) -> list[RenderableType]:
    """What the columns are, a paragraph each."""
    judged = NEED if study.need else rules_text()
    seeds = f"spread: between the bits of {study.seeds} seeds." if study.seeds > 1 else ""
    under = UNDER if _underflows([study]) else ""
    told = (words, under, BITS, ULP, REFERENCES, judged, seeds)
    return [Text(w, style="dim") for w in told if w]


def _remarks(study: Study) -> list[RenderableType]:
    """Notes, then the choices that the values were computed with."""
    notes = [Text(f"\nnote: {clean(note, 300)}") for note in study.notes]
    return [*notes, *numerics_lines(study.numerics)]


def _sweep_table(parameter: str, studies: Sequence[Study], name: str) -> Table:
    under = _underflows(studies)
    table = folding((parameter, 12), ("in   as   out", 14), (">us", 8), *_judges(studies[0], under))
    for study in studies:
        for k, (row, modes) in enumerate(_modes(study.rows, name)):
            point = str(study.value) if k == 0 else ""
            table.add_row(*(Text(w) for w in (point, modes, _time(row), *_judged(study, row, name, under))))
    return table


def _modes(rows: Iterable[ModeRow], name: str) -> list[tuple[ModeRow, str]]:
    """One row for each computation with its types; where another has the same types, with its modes below them."""
    rows = list(rows)
    different = _different(rows, name)
    types = [_types(r, name) for r in different]
    modes = [[clean(x.cube_math_type, 40) for x in rows if x.errors is r.errors] for r in different]
    several = [types.count(t) > 1 for t in types]
    told = ["\n".join([t, *(m if many else [])]) for t, m, many in zip(types, modes, several, strict=True)]
    return list(zip(different, told, strict=True))


def _heading(study: Study, sweep: str | None = None) -> RenderableType:
    data = dict(study.data)
    if sweep == "distribution":
        data["distribution"] = "every distribution"
    drawn = f"{data['distribution']}, seed {data['seed']}" if data else "given by the user"
    lines = [f"  {clean(study.case or 'given inputs', 400)}  {clean(study.product, 30)}\ndata    {drawn}"]
    lines += [f"\nsample  {clean(study.sample)}"] if study.sample else []
    return Text.assemble((clean(study.op, 38), "bold"), *lines)


def _underflows(studies: Sequence[Study]) -> bool:
    """Whether there is anything to show in a column of it."""
    rows = (row for study in studies for row in study.rows)
    return any(lost_below(by[EXACT]) for row in rows for by in row.errors.values())


def _goldens(study: Study, under: bool, judged: bool) -> tuple[str, ...]:
    """References whose figures have room: seeds and underflow take a column each. judged: of the rules, not of the bits."""
    crowded = study.seeds > 1 and under
    if judged:
        return (ROUNDED,) if study.seeds > 1 or under else GOLDENS
    return (EXACT,) if crowded else GOLDENS


def _judges(study: Study, under: bool) -> list[tuple[str, int]]:
    """Columns of what a row is judged by: of acceptance rules, or of what was asked for and the spread of the seeds."""
    bits = [f"bits {_SHORT[g]}" for g in _goldens(study, under, False)]
    figures = [(f">{n}", 5) for n in (*bits, "over", *(["under"] if under else []), "NaN")]
    spread = [(">bits spread", 6)] if study.seeds > 1 else []
    if study.need:
        return [*figures, *spread, (">need", 8)]
    rules = [g.removesuffix("_inputs") for g in _goldens(study, under, True)]
    return [*figures, *spread, *((f">(a)/(b) {n}", 7) for n in rules)]


def _summary(study: Study, name: str, named: bool) -> Table:
    title = f"{clean(name)}\nmode" if named else "mode"
    under = _underflows([study])
    naming = ((title, MODE_WIDTH), ("in", 5), ("as", 4))
    table = folding(*naming, (">us", 7), (">speed -up", 5), *_judges(study, under))
    for row in study.rows:
        if name in row.errors:
            speedup = "-" if row.speedup is None else f"{row.speedup:.3g}"
            cells = (*_computed(row), _time(row), speedup)
            table.add_row(*(Text(w) for w in (*cells, *_judged(study, row, name, under))))
    return table


def _computed(row: ModeRow) -> tuple[str, str, str]:
    """Mode, data type, what is multiplied; of a what-if its format, the bits of an element in memory, and nothing."""
    if row.what_if:
        apart = " " if len(row.dtype) <= MODE_WIDTH - len(" (what-if)") else "\n"
        return f"{clean(row.dtype, 80)}{apart}(what-if)", memory_bits(row.dtype), "-"
    mode = row.cube_math_type.replace("_PRECISION", "\n_PRECISION")
    return mode, "\n+".join(_inputs(row.dtype)), _multiplied(row)


def _inputs(dtype: str) -> list[str]:
    """Short names of the inputs' data types, one for all or one for each."""
    return [short_name(kind) for kind in dtype.split("+")]


def _multiplied(row: ModeRow) -> str:
    """What the Cube reads; of a split the format of its slices, as the mode has its name."""
    split = SPLITS.get(row.cube_math_type)
    return split.slices if split else row.compute_dtype or "-"


def _time(row: ModeRow) -> str:
    return "-" if row.time_us is None else micros(row.time_us)


def _types(row: ModeRow, name: str) -> str:
    """Data type, compute type, type of the output; of a what-if its format and what is written."""
    if row.what_if:
        return "\n".join([clean(row.dtype, 80), f"     -    {row.output_dtypes[name]}"])
    first, *others = _inputs(row.dtype)
    kinds = (first, row.compute_dtype or "-", row.output_dtypes[name])
    return "\n+".join([" ".join(f"{kind:4}" for kind in kinds), *others])


def _judged(study: Study, row: ModeRow, name: str, under: bool) -> list[str]:
    errors = row.errors[name]
    bits = [figure(errors[golden].effective_bits) for golden in _goldens(study, under, False)]
    exact = errors[EXACT]
    counts = (exact.overflow, *((lost_below(exact),) if under else ()), exact.nan_mismatch)
    lost = [(str(n) if n < 100_000 else f"{n:.0e}") for n in counts]
    every = row.seed_bits.get(name, ())
    spread = [f"{max(every) - min(every):.1g}" if every else "-"] if study.seeds > 1 else []
    goldens = _goldens(study, under, True)
    judged = [kept_text(row, name)] if study.need else [_verdicts(row, name, g) for g in goldens]
    return [*bits, *lost, *spread, *judged]


def _verdicts(row: ModeRow, name: str, golden: str) -> str:
    if not row.errors[name][golden].compared:
        return "-"
    found = {v.rule: {True: "yes", False: "no", None: "-"}[v.passed] for v in row.verdicts[name][golden]}
    return "/".join(found.get(rule, "-") for rule in RULES)


def _short(x: float) -> str:
    """Two digits, one beside a minus: a cell has seven places."""
    return f"{x:.0e}" if x < 0 else f"{x:.1e}"


# Heading, what it shows of an error report.
FIGURES: tuple[tuple[str, Callable[[ErrorReport], str]], ...] = (
    ("max abs", lambda e: f"{e.max_abs:.1e}"),
    ("MARE", lambda e: f"{e.max_rel:.1e}"),
    ("MERE", lambda e: f"{e.mean_rel:.1e}"),
    ("RMSE", lambda e: f"{e.rmse:.1e}"),
    ("balance", lambda e: f"{e.error_balance:.0e}"),
    ("1 - cos", lambda e: _short(1 - e.cosine)),
    ("max ulp", lambda e: f"{e.max_ulp:.2g}"),
    ("99.9 %", lambda e: f"{e.p999_ulp:.2g}"),
)


def _figures(rows: Iterable[ModeRow], name: str, golden: str) -> Table:
    """Every error figure; modes that compute the same are one line."""
    table = folding(("in   as   out", 14), *((f">{head}", 7) for head, _ in FIGURES))
    for row in _different(rows, name):
        report = row.errors[name][golden]
        table.add_row(Text(_types(row, name)), *(Text(show(report)) for _, show in FIGURES))
    return table


def _lost(rows: Iterable[ModeRow], name: str) -> list[RenderableType]:
    """Elements of operands and of the output that are not simply rounded, where there are any."""
    found = lost_shares(rows, name)
    if not found:
        return []
    heads = ((f">{words}", 9) for words, _ in KINDS.values())
    table = folding(("computed", 16), ("tensor", 6), ("format", 8), (">bits", 5), *heads)
    for x in found:
        shares = (share_text(x.shares[kind]) if x.shares[kind] else "-" for kind in KINDS)
        cells = (x.label, clean(x.tensor, 40), clean(x.fmt, 20), figure(x.bits), *shares)
        table.add_row(*map(Text, cells))
    return [Text(f"\n{clean(name)}, and what it is made of: {LOST}"), table]


def _different(rows: Iterable[ModeRow], name: str) -> list[ModeRow]:
    """One row for each computation."""
    found: dict[int, ModeRow] = {}
    for row in rows:
        if name in row.errors:
            found.setdefault(id(row.errors), row)
    return list(found.values())


def _refused(rows: Iterable[ModeRow]) -> list[RenderableType]:
    """Refusals and warnings, the modes of one reason together."""
    out: list[RenderableType] = []
    for dtypes, modes, status, reason in refusals(rows):
        verdict = f"refused with status {status}" if status else "note"
        names = ", ".join("+".join(_inputs(dtype)) for dtype in dtypes)
        out.append(Text(f"\n{verdict}: {clean(names, 400)} with {modes}: {clean(reason)}"))
    return out
