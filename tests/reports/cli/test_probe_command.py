"""`ascendtile probe`: written, run under the simulator with hidden numerics, read, and used."""

import json
import shutil

import pytest

from ascendtile.simulator.precision.numerics_file import read_numerics

HIDDEN = """[numerics]
cube_block_k = "fp16=8,bf16=33,hf32=3,fp32=2"
cube_block_round = "TRUNC"
cube_block_sum = "aligned=3"
fma_round = "twice"
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    """A folder that a "board" has run."""
    from ascendtile.reports.cli.main import status_of

    folder = tmp_path_factory.mktemp("board")
    (folder / "hidden.toml").write_text(HIDDEN)
    numerics = ["--no-time", "--numerics", str(folder / "hidden.toml")]
    assert status_of(["probe", "--out", str(folder / "probe")]) == 0
    assert status_of(["run", *numerics, str(folder / "probe" / "run_probe.py"), "--numpy"]) == 0
    return folder / "probe"


@pytest.mark.exhaustive
def test_what_was_hidden_is_read_and_can_be_used(ascendtile, probe, tmp_path):
    found = ascendtile("probe", "--read", probe, "-o", tmp_path / "found.toml")
    assert found.status == 0
    assert "19 named, 8 measured" in found.out
    choices = read_numerics(tmp_path / "found.toml")
    assert read_numerics(probe.parent / "hidden.toml").items() <= choices.items()
    run = ascendtile(
        "run", "matmul", "--case", "tiny", "--no-time", "--numerics", tmp_path / "found.toml", "--json"
    )
    assert json.loads(run.out)["options"]["cube_block_sum"] == "aligned=3 (file found.toml)"


def test_json_is_one_object(ascendtile, probe):
    found = json.loads(ascendtile("probe", "--read", probe, "--json").out)
    assert found["open"] == 0
    assert found["choices"]["cube_block_sum"] == "aligned=3"
    assert len(found["vectors"]) == 23
    assert all(a["bits"] for a in found["answers"])


def test_what_stays_open_is_status_1(ascendtile, probe, tmp_path):
    part = tmp_path / "part"
    shutil.copytree(probe, part)
    (part / "results" / "sums_fp16.npz").unlink()
    (part / "results" / "fused_fp32.npz").unlink()
    found = ascendtile("probe", "--read", part)
    assert found.status == 1
    assert "open. no result of fused_fp32" in " ".join(found.out.split())


def test_a_file_that_is_there_is_kept(refused, ascendtile, probe, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text("mine")
    assert "exists; take another name, or --force" in refused("probe", "--read", probe, "-o", mine)
    assert mine.read_text() == "mine"
    assert ascendtile("probe", "--read", probe, "-o", mine, "--force").status == 0
    assert "[numerics]" in mine.read_text()


def test_a_file_of_numerics_is_named_before_a_script_and_beside_choices(ascendtile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n.toml").write_text(HIDDEN)
    (tmp_path / "s.py").write_text("import sys\nprint(sys.argv[1:])\n")
    found = ascendtile("run", "--no-time", "--numerics", "n.toml", "fma_round=once", "s.py", "--mine")
    assert (found.status, found.out.splitlines()[0]) == (0, "['--mine']")
    asked = (
        "run",
        "matmul",
        "--case",
        "tiny",
        "--no-time",
        "--json",
        "--numerics",
        "n.toml",
        "fma_round=once",
    )
    options = json.loads(ascendtile(*asked).out)["options"]
    assert (options["fma_round"], options["cube_block_round"]) == ("once (chosen)", "TRUNC (file n.toml)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --out DIR to write a probe, or --read DIR"),
        (("--out", "a", "--read", "b"), "give --out DIR to write a probe, or --read DIR"),
        (("--out", "a", "-o", "x.toml"), "--output and --force are for --read"),
        (("--read", "a", "--force"), "--force is for the file of --output"),
        (("--read", "nowhere"), "nowhere is no folder"),
        (("--read", "nowhere", "-o", "x.txt"), "must end in .toml"),
    ],
)
def test_wrong_usage(refused, arguments, message):
    assert message in refused("probe", *arguments)
