"""Files that are no models, or not whole, are refused by a message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewbit.errors import Error, MissingToolError, UnsupportedError, UsageError
from fewbit.frontends import import_model
from tests.frontends.onnx.graphs import floats, model, node, onnx


def linear(opset: int = 17) -> Any:
    nodes = [node("MatMul", ["x", "fc.weight"], ["y"])]
    return model(nodes, {"x": [2, 64]}, ["y"], {"fc.weight": floats(64, 32)}, opset=opset)


def with_data_beside(folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(
        linear(), str(path), save_as_external_data=True, location="model.data", size_threshold=0
    )
    return path


def test_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(linear(), str(path))
    program = import_model(path)
    x = floats(2, 64, seed=1)
    (y,) = program.run(x)
    np.testing.assert_allclose(y, x @ floats(64, 32), rtol=1e-5, atol=1e-5)
    assert str(program.signature.inputs[0]) == "x: 2x64xf32"


def test_external_data_is_read(tmp_path: Path) -> None:
    program = import_model(with_data_beside(tmp_path))
    x = floats(2, 64, seed=1)
    np.testing.assert_allclose(program.run(x)[0], x @ floats(64, 32), rtol=1e-5, atol=1e-5)


def test_missing_external_data(tmp_path: Path) -> None:
    path = with_data_beside(tmp_path)
    (tmp_path / "model.data").unlink()
    with pytest.raises(Error, match=r"the data of 'fc\.weight' cannot be read"):
        import_model(path)


def test_short_external_data(tmp_path: Path) -> None:
    path = with_data_beside(tmp_path)
    (tmp_path / "model.data").write_bytes(b"short")
    with pytest.raises(Error, match="which has 5"):
        import_model(path)


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "inner/../../secret"])
def test_external_data_stays_in_its_folder(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"x" * 64 * 32 * 4)
    path = with_data_beside(folder)
    loaded = onnx.load(str(path), load_external_data=False)
    for entry in loaded.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    path.write_bytes(loaded.SerializeToString())
    with pytest.raises(Error, match="leaves its folder"):
        import_model(path)


def test_link_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = with_data_beside(folder)
    (folder / "model.data").rename(tmp_path / "elsewhere")
    (folder / "model.data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Error, match="outside its folder"):
        import_model(path)


@pytest.mark.parametrize("content", [b"", b"no model at all", b"\x08\x07", b"\xff" * 100])
def test_no_model(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(Error, match="not an ONNX model") as caught:
        import_model(path)
    assert caught.value.place.file is not None


def test_cut_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(linear().SerializeToString()[:1000])
    with pytest.raises(Error):
        import_model(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no model"):
        import_model(tmp_path / "model.onnx")


def test_opset_of_the_future() -> None:
    from fewbit.frontends.onnx import import_onnx

    network = linear()
    network.opset_import[0].version = 99
    with pytest.raises(UnsupportedError, match="opset 99"):
        import_onnx(network)


def test_opset_of_the_past() -> None:
    from fewbit.frontends.onnx import import_onnx

    network = model([node("Add", ["x", "x"], ["y"])], {"x": [3]}, ["y"], opset=6)
    with pytest.raises(UnsupportedError, match="opset 6") as caught:
        import_onnx(network)
    assert "convert_version" in str(caught.value)


def test_ops_that_mean_the_same_since_the_past() -> None:
    from fewbit.frontends.onnx import import_onnx

    network = linear()
    network.opset_import[0].version = 6
    assert (
        import_onnx(network).signature.outputs[0].shape
        == import_onnx(linear()).signature.outputs[0].shape
    )


def test_what_torch_logs_of_an_error_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    nodes = [node("MatMul", ["x", "w"], ["y"])]
    onnx.save(model(nodes, {"x": [2, 3]}, ["y"], {"w": floats(4, 5)}), str(path))
    start = "from fewbit.cli.main import main; main()"
    command = [sys.executable, "-c", start, "inspect", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "MatMul fails" in done.stderr
    assert "Traceback" not in done.stderr


def test_onnx_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(linear(), str(path))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingToolError, match="onnx") as caught:
        import_model(path)
    assert "pip install 'fewbit[onnx]'" in str(caught.value)
