from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from fewbit.cli.main import run
from fewbit.errors import UsageError
from tests.reduce.chains import write

KINDS = ("Relu", "Exp", "NotAnOp", "Tanh", "Neg")


def test_one_node_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write(tmp_path / "m.onnx", *KINDS)
    run(["reduce", str(model), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["failure"]["kind"] == "refused"
    assert said["ops"] == {"before": 5, "after": 1}
    left = onnx.ModelProto()
    left.ParseFromString(Path(said["output"]).read_bytes())
    assert [node.op_type for node in left.graph.node] == ["NotAnOp"]


def test_a_model_that_works_is_not_reduced(tmp_path: Path) -> None:
    model = write(tmp_path / "m.onnx", "Relu")
    with pytest.raises(UsageError, match="nothing to reduce"):
        run(["reduce", str(model), "--interpret"])
