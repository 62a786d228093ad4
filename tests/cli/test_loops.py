"""`fewbit inspect --loops` and `fewbit doctor --hardware`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.cost.hardware.host import host

MATMUL = """
func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x32xf32>, %c: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x32xf32>) outs(%c : tensor<4x32xf32>)
    -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWBIT_CACHE_DIR", str(tmp_path / "cache"))
    host.cache_clear()


def test_loops_of_a_file_and_of_a_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    (folder / "product.mlir").write_text(MATMUL)
    assert guarded(run, ["inspect", str(folder / "product.mlir"), "--loops", "--json"]) in (0, None)
    (source,) = json.loads(capsys.readouterr().out)["sources"]
    (nest,) = source["nests"]
    assert nest["kind"] == "contraction"
    assert nest["macs"] == 4 * 8 * 32
    assert source["unmodelled"] == []
    assert guarded(run, ["inspect", str(folder), "--loops"]) in (0, None)
    printed = capsys.readouterr().out
    assert "4x32 sum 8" in printed
    assert "1 nests" in printed


def test_this_machine_is_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert guarded(run, ["doctor", "--hardware"]) in (0, None)
    assert "measured = true" in capsys.readouterr().out
    assert len(list((tmp_path / "cache" / "hardware").iterdir())) == 1
    host.cache_clear()
