"""What a user may give: overrides, files of their own, and every way to get it wrong."""

from __future__ import annotations

import contextlib
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascendtile.simulator.errors import ProductError
from ascendtile.simulator.products import load_product, loading, product_names

B3 = "ascend910b3"


@pytest.fixture
def user_file(tmp_path):
    def write(text, name="mine.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("key", "raw", "value"),
    [
        ("buffers.ub", "262144", 262144),
        ("buffers.ub", "256KiB", 262144),
        ("buffers.ub", "256 KiB", 262144),
        ("buffers.ub", 262144.0, 262144),
        ("clock.aicore_mhz", "1.8GHz", 1800.0),
        ("clock.aicore_mhz", 1500, 1500.0),
        ("memory.bandwidth_tb_per_s", "400GB/s", 0.4),
        ("launch.all_cores_overhead_us", "500ns", 0.5),
        ("path.gm_to_ub.bytes_per_cycle", "64 B/cycle", 64.0),
        ("sync.set_flag_cycles", "0", 0.0),
        ("numerics.fp32_subnormals", "keep", "keep"),
        ("dtypes.vector_arithmetic", "fp16, fp32", ("fp16", "fp32")),
    ],
)
def test_override(key, raw, value):
    figure = load_product(B3, overrides={key: raw}).figure(key)
    assert figure.value == pytest.approx(value) if isinstance(value, float) else figure.value == value
    assert type(figure.value) is type(value)
    assert (figure.source, figure.grade, figure.overridden) == ("override", "D", True)
    assert not load_product(B3).figure(key).overridden


@pytest.mark.parametrize(
    ("key", "raw", "message"),
    [
        ("buffers.ub", "10us", r"buffers.ub is in bytes, got the unit 'us'; allowed: bytes, .*KiB"),
        ("buffers.ub", "256KB", r"KB may mean 1000 or 1024: write KiB"),
        ("buffers.ub", "many", r"must be a number in bytes, got 'many'"),
        ("buffers.ub", True, r"must be a number in bytes, got True"),
        ("buffers.ub", "-32", r"must not be negative, got '-32'"),
        ("buffers.ub", 0, r"must be greater than zero, got 0"),
        ("buffers.ub", "nan", r"must be finite"),
        ("buffers.ub", float("inf"), r"must be finite"),
        ("buffers.ub", 10**400, r"must be finite .* got an integer of 2\^62 or more"),
        ("buffers.ub", "0.5", r"must be a whole number of bytes"),
        ("buffers.ub", 1000, r"multiple of alignment.ub = 32 bytes, got 1000"),
        ("buffers.ub", 8192, r"leaves nothing beside the 8448 reserved bytes"),
        ("bufers.ub", 1, r"unknown key 'bufers.ub'; did you mean buffers.ub"),
        ("path.<path>.pipe", "V", r"unknown key"),
        ("path.gm_to_ub.pipe", "MTE9", r"must be one of S, MTE1, .* got 'MTE9'"),
        ("cube.m", 17, r"cube.m must be a multiple of 16, the side of a fractal, got 17"),
        ("cube.n", 0, r"must be greater than zero, got 0"),
        ("cube.k0.fp16", 15, r"cube.k0.fp16 must be 16 elements, the 32 bytes .* got 15"),
        ("cube.mnk_max", 0.5, r"must be a whole number of count"),
        ("alignment.ub", 48, r"must be a power of two, got 48"),
        ("cores.cube_cores", 10, r"aiv_per_aic = 10 x 2 = 20, got 40; change both"),
        ("buffers.fb_parts", "1KiB,2KiB", r"add up to 3072 bytes, buffers.fb_total says 7168"),
        ("ub_banks.groups", 8, r"ub_banks.banks must be .* = 24, got 48"),
        ("dtypes.storage", "fp16", r"dtypes.cube_inputs names bf16, .* which dtypes.storage lacks"),
        ("dtypes.storage", "fp16,fp16", r"must not name anything twice"),
        ("dtypes.storage", "float16", r"must be one of fp16"),
        ("dtypes.storage", 7, r"must be a list, got 7"),
        (7, 7, r"a key is text"),
    ],
)
def test_bad_override(key, raw, message):
    with pytest.raises(ProductError, match=message) as caught:
        load_product(B3, overrides={key: raw})
    assert str(caught.value).startswith("override of ascend910b3: ")


def test_banks_need_not_cover_a_what_if_ub():
    assert load_product(B3, {"buffers.ub": "1MiB"}).ub_bytes == 2**20


def test_contradiction_is_resolved_by_changing_both():
    assert load_product(B3, {"cores.cube_cores": 10, "cores.vector_cores": 20}).vector_cores == 20


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ascend910b", r"unknown product 'ascend910b': did you mean ascend910b1, ascend910b2"),
        ("Ascend910B3", r"did you mean ascend910b3"),
        ("gpu", r"unknown product 'gpu'; a path .* `ascendtile products` lists them"),
        ("", r"unknown product ''"),
        ("nowhere/x.toml", r"cannot read product file 'nowhere/x.toml': No such file"),
        ("a\0.toml", r"cannot read product file"),
        (3, r"a product is a name, a path .* got 3"),
        (None, r"a product is a name"),
    ],
)
def test_bad_name(name, message):
    with pytest.raises(ProductError, match=message):
        load_product(name)


def test_user_file_with_base(user_file):
    path = user_file('base = "ascend910b3"\n[buffers]\nub = "256KiB"\nl1 = 1048576\n')
    p = load_product(path)
    assert (p.name, p.ub_bytes, p.l1_bytes, p.l0a_bytes) == ("mine", 262144, 1048576, 65536)
    figure = p.figure("buffers.ub")
    assert (figure.source, figure.grade, figure.unit) == ("user file mine.toml", "D", "bytes")
    assert load_product(str(path)) == p


def test_copy_of_a_shipped_file_has_the_same_values(user_file):
    for name in product_names():
        text = (loading.FOLDER / f"{name}.toml").read_bytes()
        assert load_product(user_file(text)).fingerprint == load_product(name).fingerprint


FOLDER = loading.FOLDER
FIGURE = '[buffers]\nub = {{ value = {}, unit = "{}", source = "{}", grade = "{}"{} }}\n'


def figure_text(value="262144", unit="bytes", source="me", grade="B", rest=""):
    return 'base = "ascend910b3"\n' + FIGURE.format(value, unit, source, grade, rest)


VARIANT = """
base = "ascend910b1"
[product]
name = { value = "Ascend 910B1 of 20 cores", unit = "text", source = "INI", grade = "A" }
[cores]
cube_cores = { value = 20, unit = "count", source = "INI", grade = "A" }
vector_cores = { value = 40, unit = "count", source = "INI", grade = "A" }
[buffers]
ub = { source = "me", note = "seen on a board" }
[reused]
grade = "B"
words = "not measured there"
but = ["cube", "vector.op.exp"]
"""


def test_a_shipped_variant_states_only_what_it_has_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "FOLDER", tmp_path)
    for path in (*FOLDER.glob("*.toml"),):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "ascend910bx.toml").write_text(VARIANT)
    assert len(VARIANT.splitlines()) < 25
    for cached in (loading.product_names, loading._shipped):
        cached.cache_clear()
    try:
        assert "ascend910bx" in loading.product_names()
        base, made = loading.load_product("ascend910b1"), loading.load_product("ascend910bx")
    finally:
        monkeypatch.undo()
        for cached in (loading.product_names, loading._shipped):
            cached.cache_clear()
    own = {"product.name", "cores.cube_cores", "cores.vector_cores", "buffers.ub"}
    assert (made.cube_cores, made.vector_cores, made.keys()) == (20, 40, base.keys())
    for key in set(base.keys()) - own:
        was, now = base.figure(key), made.figure(key)
        reused = was.grade == "B" and not key.startswith(("cube.", "vector.op.exp."))
        assert (now.value, now.low, now.high, now.note) == (was.value, was.low, was.high, was.note)
        assert now.source == was.source + (" (not measured there)" if reused else "")
        assert now.grade == ("D" if reused else was.grade)
    ub = made.figure("buffers.ub")
    assert (ub.value, ub.source, ub.grade, ub.note) == (196608, "me", "A", "seen on a board")
    assert set(made.sources) <= set(base.sources)


def test_a_figure_of_all_products_is_written_once():
    assert sum(len(path.read_text().splitlines()) for path in FOLDER.glob("*.toml")) <= 1600


def test_full_figure_in_a_user_file(user_file):
    figure = load_product(
        user_file(figure_text("256", unit="KiB", rest=', low = 128, high = 512, note = "n"'))
    ).figure("buffers.ub")
    assert (figure.value, figure.unit, figure.low, figure.high) == (262144, "bytes", 131072, 524288)
    assert (figure.grade, figure.note, figure.overridden) == ("B", "n", False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[buffers\n", r"mine.toml: not valid TOML: .*line 1"),
        ("a = " + "[" * 5000, r"mine.toml: not valid TOML"),
        (b"\xff\xfe", r"mine.toml: must be UTF-8 text, byte 0 is not"),
        ("#" * (2**20 + 1), r"has at most 1048576 bytes, got 1048577"),
        ("", r'mine.toml: missing: product.name .* base = "ascend910b3"'),
        ('base = "x"', r"mine.toml: base must name a shipped product \(ascend310b, .* got 'x'"),
        ("base = 3", r"base must name a shipped product"),
        ('sources = 3\nbase = "ascend910b3"', r"\[sources\] must map"),
        ("[buffers]\nubb = 1", r"mine.toml: unknown key 'buffers.ubb'; did you mean buffers.ub"),
        ("[buffers.ub]\nsize = 1", r"mine.toml: buffers.ub lacks value, unit, source, grade"),
        ("[a.b.c.d.e.f.g.h.i]\nj = 1", r"nested deeper than any figure|unknown key"),
        (figure_text(unit="us"), r"mine.toml: buffers.ub is in bytes, got the unit 'us'"),
        (figure_text(grade="E"), r"buffers.ub: grade must be one of A, B, C, D, got 'E'"),
        (figure_text(source=" "), r"buffers.ub: source must be text"),
        (figure_text(source=r"\u001b[31m"), r"source must be text that can be printed, got '.x1b"),
        (figure_text(rest=r', note = "\u202e"'), r"note must be text that can be printed"),
        (figure_text() + '\n[sources]\n"\\u0007" = "a bell"', r"texts that can be printed"),
        (figure_text("-1"), r"must not be negative"),
        (figure_text("nan"), r"must be finite"),
        (figure_text(rest=", low = 300000"), r"low <= value <= high must hold, got low 300000"),
        (figure_text(rest=', low = "x"'), r"buffers.ub: low and high: must be a number"),
        (figure_text(rest=", typo = 1"), r"has unknown entries \['typo'\]"),
        ('without = ["buffers.ub"]', r"unknown key 'without'"),
        ('base = "ascend910b3"\nwithout = 3', r"without must be a list of keys, got 3"),
        ('base = "ascend910b3"\nwithout = ["buffers.u"]', r"without: the base has no figure 'buffers.u'"),
        ('base = "ascend910b3"\nwithout = ["buffers.ub"]', r"mine.toml: missing: buffers.ub"),
        ('base = "ascend910b3"\nreused = 1', r"reused must be a table with grade, words, but, got 1"),
        ('base = "ascend910b3"\n[reused]\ngrade = "B"', r"reused must be a table with grade, words, but"),
        ('base = "ascend910b3"\n[buffers.ub]\nsize = 1', r"buffers.ub has unknown entries \['size'\]"),
        ('base = "ascend910b3"\n[buffers.ub]\nunit = "KiB"', r"buffers.ub lacks value, source, grade"),
        (figure_text("{ a = 1 }"), r"unknown key 'buffers.ub.a'"),
        (figure_text("{ a = 1 }", rest=", low = 3"), r"low must be a table with the names of value"),
    ],
)
def test_bad_user_file(user_file, text, message):
    with pytest.raises(ProductError, match=message):
        load_product(user_file(text))


def test_folder_or_device_is_not_a_product(tmp_path):
    folder = tmp_path / "x.toml"
    folder.mkdir()
    for path in (folder, os.devnull + "/", "/dev/zero"):
        with pytest.raises(ProductError):
            load_product(path)


def load_or_product_error(path, content):
    path.write_bytes(content)
    with contextlib.suppress(ProductError):
        load_product(path)


FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(st.binary(max_size=300))
def test_random_bytes_raise_nothing_else(tmp_path, content):
    load_or_product_error(tmp_path / "fuzz.toml", content)


@FUZZ
@given(st.integers(0, 40000), st.integers(1, 40), st.binary(max_size=12))
def test_damaged_copies_raise_nothing_else(tmp_path, start, length, patch):
    original = (loading.FOLDER / "ascend310p.toml").read_bytes()
    load_or_product_error(tmp_path / "fuzz.toml", original[:start] + patch + original[start + length :])


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.binary(max_size=4)
)
KEYS = st.sampled_from(load_product(B3).keys()) | st.text(max_size=12)


@FUZZ
@given(KEYS, SCALARS | st.lists(SCALARS, max_size=3))
def test_random_overrides_raise_nothing_else(key, raw):
    with contextlib.suppress(ProductError):
        load_product(B3, {key: raw})
