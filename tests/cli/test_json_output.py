"""`--json`, on every verb and in every mode that has it: one object, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fewbit.base.json_output import json_text
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.cost.hardware.host import host

TEXT = """
mico.constant @fc.weight : tensor<32x64xf32> = dense<0.5>
func.func @main(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  %w = mico.get_constant @fc.weight : tensor<32x64xf32>
  %y = mico.bitlinear(%x, %w) : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
  func.return %y : tensor<?x32xf32>
}
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWBIT_CACHE_DIR", str(tmp_path / "cache"))
    host.cache_clear()


@pytest.fixture
def net(tmp_path: Path) -> Path:
    file = tmp_path / "net.mlir"
    file.write_text(TEXT)
    return file


def printed(capsys: pytest.CaptureFixture[str], *argv: object) -> dict[str, Any]:
    """Return what a command prints, if that is one object of strict JSON."""
    capsys.readouterr()
    assert guarded(run, [str(word) for word in (*argv, "--json")]) in (0, None)
    return json.loads(capsys.readouterr().out, parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def compiled(net: Path, target: str) -> Path:
    folder = net.parent / target
    assert guarded(run, ["compile", str(net), "-r", "w8a8", "-t", target, "-o", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("target", ["cpu", "vexii", "gemmini", "bitfusion"])
def test_an_artifact(target: str, net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = compiled(net, target)
    output = printed(capsys, "inspect", folder)
    assert (output["name"], output["target"], output["recipe"]) == ("net", target, "w8a8")
    assert output["inputs"] == [{"name": "x", "shape": [None, 64], "element": "f32"}]
    assert output["outputs"][0]["shape"] == [None, 32]
    assert output["weight_bytes"] >= 32 * 64
    for name, size in output["files"].items():
        assert (folder / name).stat().st_size == size
    assert ("functions" in output) == (target == "vexii")


def test_what_the_text_of_an_artifact_shows_is_in_its_json(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = compiled(net, "vexii")
    output = printed(capsys, "inspect", folder)
    assert guarded(run, ["inspect", str(folder)]) in (0, None)
    text = capsys.readouterr().out
    rows = text.partition("function ")[2].splitlines()[1:]
    assert {line.split()[0] for line in rows} == {each["name"] for each in output["functions"]}
    for number in (output["weight_bytes"], *output["files"].values()):
        assert f"{number:,} B" in text


def test_disassembly(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = compiled(net, "vexii")
    found = printed(capsys, "inspect", folder, "--asm", "dot_*")["functions"]
    assert found
    for name, lines in found.items():
        assert name.startswith("dot_")
        assert any("dot" in line for line in lines)


def test_commands(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stream,) = printed(capsys, "inspect", compiled(net, "gemmini"), "--commands")["streams"]
    assert stream["commands"]


def test_dispatches(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("iree.compiler")
    output = printed(capsys, "inspect", compiled(net, "iree-cpu"), "--dispatches")
    assert output["dispatches"]


def test_a_model_with_costs_and_cycles(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = printed(capsys, "inspect", net, "-r", "w8a8", "--cost", "--cycles")
    assert output["recipe"] == "w8a8"
    assert len(output["layers"]) == len(output["cost"]["layers"]) == len(output["cycles"]) == 1


def test_loops_have_their_tiles(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = printed(capsys, "inspect", net, "--loops")["sources"]
    nest = next(nest for nest in source["nests"] if nest["macs"])
    assert nest["tiles"]
    assert nest["bytes_into_l1"] >= nest["bytes_into_l2"] > 0


def test_a_layer_without_noise_is_exact(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net.write_text(TEXT.replace("dense<0.5>", "dense<0.0>"))
    (layer,) = printed(capsys, "inspect", net, "-r", "w8a8")["layers"]
    assert (layer["sqnr_db"], layer["exact"]) == (None, True)


@pytest.mark.parametrize("target", ["vexii", "gemmini", "bitfusion"])
def test_counts_of_simulated_hardware(
    target: str, net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, "run", compiled(net, target), "--stats")
    (output,) = found["outputs"]
    assert (output["name"], output["shape"], len(output["first"])) == ("output0", [1, 32], 6)
    assert output["least"] <= output["mean"] <= output["greatest"]
    stats = found["stats"]
    assert stats["counts"]
    assert stats["layers"][0]["counts"]
    assert all(each["cycles"] > 0 and each["error"] for each in stats["estimates"])


def test_runs_that_are_timed(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = printed(capsys, "run", compiled(net, "cpu"), "--random", "--repeat", "3")
    assert output["runs"]["count"] == 3
    assert 0 < output["runs"]["least_seconds"] <= output["runs"]["median_seconds"]
    assert "stats" not in output


def test_tune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "processor" in printed(capsys, "tune", "--show")
    file = tmp_path / "spec.mlir"
    output = printed(capsys, "tune", "--export", file, "--tuning-db", tmp_path / "db")
    assert output["exported"] == {"file": str(file), "ops": 0, "left_out": 0}


def test_numbers_that_json_lacks_are_null() -> None:
    values = {"a": [1.5, float("inf")], "b": {"c": float("nan")}, "d": (1, "x", True, None)}
    assert json.loads(json_text(values)) == {"a": [1.5, None], "b": {"c": None}, "d": [1, "x", True, None]}  # fmt: skip
