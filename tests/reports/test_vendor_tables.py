"""Tables with the vendor's names: their columns, their sums, and the way back through `ascendtile compare`."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import ascendtile.simulator as sim
from ascendtile.kernels.running.run_op import run_op
from ascendtile.reports.cli.main import cli
from ascendtile.reports.comparing.profile import compare_profile
from ascendtile.reports.vendor.reading import read_utilization
from ascendtile.reports.vendor.units import units
from ascendtile.reports.vendor.writing import write_tables

from ..support.sample_runs import launch, run

TABLES = ("OpBasicInfo.csv", "PipeUtilization.csv", "Memory.csv", "ResourceConflictRatio.csv")


@pytest.fixture(scope="module")
def product():
    return run_op("matmul", {"m": 256, "n": 256, "k": 512}, "float16", values=False).run


@pytest.fixture(scope="module")
def norm():
    return run_op("rms_norm_grad", {"rows": 64, "cols": 512}, "float16", values=False).run


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_one_launch_is_one_folder_of_tables(product, tmp_path):
    written = write_tables(product, tmp_path / "out")
    assert {p.name for p in written} == {*TABLES, "op_summary.csv"}
    found = rows(tmp_path / "out" / "PipeUtilization.csv")
    one = product.launches[0]
    assert len(found) == one.cores_used
    assert {r["sub_block_id"] for r in found} == {"cube0"}
    assert max(float(r["aic_total_cycles"]) for r in found) == pytest.approx(one.cycles)
    for name, column in (
        ("AIC.M", "cube"),
        ("AIC.MTE2", "mte2"),
        ("AIC.FIXP", "fixpipe"),
        ("AIC.S", "scalar"),
    ):
        busy = [float(r[f"aic_{column}_ratio"]) * float(r["aic_total_cycles"]) for r in found]
        assert sum(busy) / len(busy) == pytest.approx(one.pipes[name].busy_cycles, rel=1e-3)
    assert {r["aiv_vec_ratio"] for r in found} == {"NA"}


def test_volumes_are_what_the_launch_moved(product, tmp_path):
    write_tables(product, tmp_path)
    one = product.launches[0]
    found = rows(tmp_path / "Memory.csv")
    volume = sum(float(r["GM_to_L1_datas(KB)"]) for r in found) * 1024
    assert volume == pytest.approx(one.roofs["GM to L1"].amount, rel=1e-6)
    assert all(0 < float(r["GM_to_L1_bw_usage_rate(%)"]) <= 100 for r in found)
    info = rows(tmp_path / "OpBasicInfo.csv")
    assert info[0]["Op Name"] == "matmul_tiles"
    assert float(info[0]["Task Duration(us)"]) == pytest.approx(one.time_us)


def test_volumes_are_those_of_each_core(tmp_path):
    """Of 40 cores the last has fewer rows to do; a record that does not know has means, and the command says so."""
    record = run_op("rms_norm_grad", {"rows": 220, "cols": 512}, "float16", values=False).run
    one = max(record.launches, key=lambda x: x.time_us)
    write_tables(replace(record, launches=(one,)), tmp_path / "new")
    stored = one.core_bytes["AIV.UB to GM"]
    assert len(set(stored[: one.cores_used])) > 1
    for row in rows(tmp_path / "new" / "Memory.csv"):
        moved = float(row["UB_to_GM_datas(KB)"])
        assert moved * 1024 == pytest.approx(stored[int(row["block_id"])], abs=1e-2)
        rate = moved * 1024 / 1e3 / float(row["aiv_time(us)"])
        assert float(row["aiv_ub_to_gm_bw(GB/s)"]) == pytest.approx(rate, rel=1e-4)
    old = replace(record, launches=(replace(one, core_bytes={}),))
    write_tables(old, tmp_path / "old")
    assert len({r["UB_to_GM_datas(KB)"] for r in rows(tmp_path / "old" / "Memory.csv")}) == 1
    old.save(tmp_path / "old.run")
    told = CliRunner().invoke(
        cli, ["export", str(tmp_path / "old.run"), "--as", "vendor", "-o", str(tmp_path / "t")]
    )
    assert "are means over the cores" in told.stderr


def test_waits_of_a_pipe_and_its_work_fit_into_its_core(norm, tmp_path):
    write_tables(norm, tmp_path)
    folder = tmp_path / "1_full_row" if (tmp_path / "1_full_row").is_dir() else next(tmp_path.glob("1_*"))
    for work, waits in zip(
        rows(folder / "PipeUtilization.csv"), rows(folder / "ResourceConflictRatio.csv"), strict=True
    ):
        for pipe in ("vec", "mte2", "mte3"):
            both = float(work[f"aiv_{pipe}_ratio"]) + float(waits[f"aiv_{pipe}_wait_ratio"])
            assert 0 < both <= 1 + 1e-6
        lost = float(waits["aiv_vec_bankgroup_cflt_ratio"]) + float(waits["aiv_vec_bank_cflt_ratio"])
        assert 0 < lost == pytest.approx(float(waits["aiv_vec_total_cflt_ratio"]), abs=2e-6)
        assert lost < float(work["aiv_vec_ratio"])
        assert waits["aiv_vec_mte_cflt_ratio"] == waits["aiv_vec_resc_cflt_ratio"] == "NA"


def test_bank_conflicts_are_shares_of_the_cores_cycles(norm, tmp_path):
    write_tables(norm, tmp_path)
    for number, one in enumerate(norm.launches):
        found = rows(tmp_path / f"{number}_{one.kernel}" / "ResourceConflictRatio.csv")
        for kind, column in (("bank group", "bankgroup"), ("bank", "bank")):
            lost = one.pipes["AIV.V"].core_conflicts[kind]
            for row in found:
                share = float(row[f"aiv_vec_{column}_cflt_ratio"])
                assert share * float(row["aiv_total_cycles"]) == pytest.approx(
                    lost[int(row["block_id"])], abs=1e-6 * float(row["aiv_total_cycles"])
                )


def test_records_without_conflicts_have_none_in_the_table(norm, tmp_path):
    """Those that an earlier version wrote."""
    one = norm.launches[1]
    pipes = {n: replace(p, core_conflicts={}) for n, p in one.pipes.items()}
    write_tables(replace(norm, launches=(replace(one, pipes=pipes),)), tmp_path)
    for row in rows(tmp_path / "ResourceConflictRatio.csv"):
        assert row["aiv_vec_total_cflt_ratio"] == row["aiv_vec_bank_cflt_ratio"] == "NA"


def test_op_summary_has_a_row_for_each_launch_one_after_another(norm, tmp_path):
    write_tables(norm, tmp_path)
    found = rows(tmp_path / "op_summary.csv")
    assert [r["Op Name"] for r in found] == [x.kernel for x in norm.launches]
    assert float(found[1]["Task Start Time(us)"]) == pytest.approx(norm.launches[0].time_us, abs=1e-5)
    assert {r["Task Type"] for r in found} == {"AI_VECTOR_CORE"}


def test_op_summary_tells_what_a_kernel_reads_from_what_it_writes(tmp_path):
    record = run_op("rms_norm_grad", {"rows": 64, "cols": 512}, "float16", values=False).run
    write_tables(record, tmp_path)
    for one, row in zip(record.launches, rows(tmp_path / "op_summary.csv"), strict=True):
        for way, word in (("Input", "in"), ("Output", "out")):
            mine = [x for n, x in one.arguments.items() if word in one.directions.get(n, "").split()]
            shapes = ";".join(x.split("[")[1].removesuffix("]").replace(" ", "") for x in mine)
            assert row[f"{way} Shapes"] == (f'"{shapes}"' if mine else "N/A")
            assert row[f"{way} Formats"] == (";".join(["ND"] * len(mine)) or "N/A")
    fill = record.launches[0]
    assert (fill.kernel, fill.directions) == ("zero_fill", {"out_ptr": "out"})
    old = replace(record, launches=(replace(fill, directions={}),))
    write_tables(old, tmp_path / "old")
    (row,) = rows(tmp_path / "old" / "op_summary.csv")
    assert (row["Input Shapes"], row["Output Shapes"]) == ('"512"', "N/A")


def test_a_coupled_core_has_one_group_of_columns(tmp_path):
    record = run_op("matmul", {"m": 64, "n": 64, "k": 64}, "float16", values=False, product="ascend910a").run
    write_tables(record, tmp_path)
    found = rows(tmp_path / "PipeUtilization.csv")
    assert float(found[0]["aic_cube_ratio"]) > 0
    assert "aic_vec_ratio" in found[0]
    assert not any(name.startswith("aiv") for name in found[0])


def test_a_kernels_name_is_neither_a_path_nor_a_formula(tmp_path, norm):
    parts = [
        replace(x, kernel=n)
        for x, n in zip(norm.launches, ("../../etc/x", "=cmd|' /C calc'!A0"), strict=False)
    ]
    written = write_tables(replace(norm, launches=tuple(parts)), tmp_path / "out")
    assert all((tmp_path / "out") in p.parents for p in written)
    assert rows(tmp_path / "out" / "op_summary.csv")[1]["Op Name"].startswith("'=")


def test_what_cannot_be_written_is_said(tmp_path, product):
    with pytest.raises(sim.UsageError, match="does not tell cores apart; run it again"):
        write_tables(run(launches=(launch(),)), tmp_path)
    with pytest.raises(sim.UsageError, match="was run for values only"):
        write_tables(run(launches=()), tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(sim.UsageError, match="cannot make it: Not a directory"):
        write_tables(product, tmp_path / "file" / "below")
    with pytest.raises(sim.UsageError, match="is a file; the tables need a folder"):
        write_tables(product, tmp_path / "file")
    with pytest.raises(sim.UsageError, match="know fewer cores"):
        units(replace(product.launches[0], core_cycles=(1.0,) * 999))


def test_a_run_beside_its_own_table_has_no_error(product, tmp_path):
    write_tables(product, tmp_path)
    found = compare_profile(product, read_utilization(tmp_path / "PipeUtilization.csv"))
    assert not found.missing
    assert len(found.rows) > 5
    for row in found.rows:
        assert row.predicted == pytest.approx(row.measured, abs=2e-6)


def test_measured_figures_are_means_and_the_longest_core(product, tmp_path):
    table = tmp_path / "PipeUtilization.csv"
    table.write_text(
        "\ufeffblock_id,sub_block_id,aic_time(us),aic_mac_ratio,aic_mte2_ratio,aiv_time(us),aiv_vec_ratio,aic_icache_miss_rate\n"
        "0,cube0,10,0.5,0.25,NA,NA,0.01\n1,cube0,20,0.7,,NA,NA,0.02\n0,vector0,NA,NA,NA,4,0.5,NA\n",
        encoding="utf-8",
    )
    measured = read_utilization(table)
    assert measured.us == {"aic": (15.0, 20.0), "aiv": (4.0, 4.0)}
    assert measured.ratios == {("aic", "cube"): 0.6, ("aic", "mte2"): 0.25, ("aiv", "vec"): 0.5}
    found = compare_profile(product, measured)
    assert found.missing == ("aiv_time(us)", "aiv_vec_ratio")
    cube = next(r for r in found.rows if r.name == "aic cube")
    assert cube.error == pytest.approx(cube.predicted / 0.6 - 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "has no columns like aiv_time"),
        ("", "the columns here are none"),
        ("import numpy as np, triton\n\nx = 1\n", "is no table and no record of a run"),
        ("aiv_time(us),aiv_vec_ratio\nNA,NA\n", "has no row with a time"),
        ("aiv_time(us),aiv_vec_ratio\n3,much\n", "row 2, column aiv_vec_ratio: 'much' is no number"),
        ("aiv_time(us),aiv_vec_ratio\n-3,0.1\n", "is no number of 0 or more"),
        ("aiv_time(us),aiv_vec_ratio\ninf,0.1\n", "is no number of 0 or more"),
        ("aiv_time(us),aiv_vec_ratio\n" + "1,1\n" * 100_001, "has more than 100000 rows"),
    ],
)
def test_tables_that_are_none_are_refused(text, message, tmp_path):
    table = tmp_path / "x.csv"
    table.write_text(text)
    with pytest.raises(sim.UsageError, match=message):
        read_utilization(table)


def test_the_commands(norm, product, tmp_path):
    norm.save(tmp_path / "n.run")
    product.save(tmp_path / "p.run")
    table = tmp_path / "v" / "PipeUtilization.csv"

    def call(*arguments):
        return CliRunner().invoke(cli, [str(x) for x in arguments])

    assert call("export", tmp_path / "p.run", "--as", "vendor", "-o", tmp_path / "v").exit_code == 0
    told = json.loads(call("compare", tmp_path / "p.run", table, "--json").stdout)
    assert told["kernel"] == "matmul_tiles"
    assert all(abs(r["error"] or 0) < 1e-3 for r in told["rows"])
    assert "aic cube" in call("compare", tmp_path / "p.run", table).stdout
    for arguments, word in (
        ((tmp_path / "n.run", table), "has 2 launches (0 "),
        ((tmp_path / "n.run", table, "--launch", "7"), "there is no 7"),
        ((tmp_path / "n.run", table, "--launch", "1"), "have nothing in common"),
        ((tmp_path / "p.run", tmp_path / "p.run", "--launch", "1"), "--launch is for a PipeUtilization.csv"),
        ((tmp_path / "p.run", tmp_path / "none.csv"), "No such file"),
        ((table, table), "is not a run record"),
    ):
        bad = call("compare", *arguments)
        said = bad.output + str(bad.exception)
        assert bad.exit_code != 0
        assert word in said
        assert "Traceback" not in bad.output


def test_names_are_one_line_of_plain_characters(product, tmp_path):
    """Neither half a surrogate nor an escape sequence nor a turned direction of writing gets into a table."""
    odd = replace(product.launches[0], kernel="a\ud800\x1b[31m\u202e\nb")
    write_tables(replace(product, launches=(odd,)), tmp_path)
    text = (tmp_path / "op_summary.csv").read_text()
    assert r"a\ud800\x1b[31m\u202e b" in text
    assert len(text.splitlines()) == 2
