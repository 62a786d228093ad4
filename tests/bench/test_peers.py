"""Other tools: their names, what they need, and what they compute."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from fewbit.bench.case import Case
from fewbit.bench.peers import PEERS, find_tool, missing_packages, parse_peers
from fewbit.bench.worker import prepare, variant_folder
from fewbit.cost.layers import sqnr
from fewbit.errors import MissingToolError, UnsupportedError, UsageError

FOR_STATE = ("int8 weights",)
"""Variants that are for models with a state, which this one has not."""
FACTORY = """
import torch
def made():
    torch.manual_seed({seed})
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 5))
    return net, torch.randn(1, 3, 8, 8)
"""


@pytest.fixture
def case(tmp_path: Path) -> Case:
    from fewbit.frontends.locate import find_module

    path = tmp_path / "net.py"
    path.write_text(FACTORY.format(seed=0))
    module = find_module(f"{path}:made")
    assert module is not None
    # Workers make the model anew: its weights must be those of the case, whatever it draws.
    path.write_text(FACTORY.format(seed=1))
    case = Case(folder=tmp_path, model=f"{path}:made", quantized=False)
    rng = np.random.default_rng(0)
    samples = [[rng.standard_normal((1, 3, 8, 8), np.float32)] for _ in range(4)]
    case.save(module.model, [x.numpy() for x in module.inputs], samples)
    with torch.no_grad():
        case.save_outputs("expected", [module.model(*module.inputs).numpy()])
    return case


def test_names_are_checked() -> None:
    assert parse_peers("torch, iree,torch", False) == ["torch", "iree"]
    assert parse_peers("none", True) == []
    assert {"torch", "iree"} <= set(parse_peers("available", True))
    with pytest.raises(UsageError, match="no tool 'tflite'") as caught:
        parse_peers("torch,tflite", False)
    assert all(name in str(caught.value.hint) for name in PEERS)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # A module that is None cannot be imported.
    for package in ("onnxruntime", "openvino"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingToolError, match="onnxruntime needs onnxruntime") as caught:
        parse_peers("torch,onnxruntime", False)
    assert "fewbit[bench]" in str(caught.value.hint)
    assert "openvino" not in parse_peers("available", False)


@pytest.mark.parametrize(
    ("name", "quantized"),
    [*((name, False) for name in PEERS), ("onnxruntime", True), ("openvino", True)],
)
def test_tools_compute_the_same(name: str, quantized: bool, case: Case) -> None:
    if lacking := missing_packages(name, quantized):
        pytest.skip(f"{', '.join(lacking)} not installed")
    case = case.model_copy(update={"quantized": quantized})
    tool = find_tool(name)
    for variant in tool.variants(quantized)[:2]:
        folder = variant_folder(case, name, variant)
        folder.mkdir()
        if variant in FOR_STATE:
            with pytest.raises(UnsupportedError, match="where a model has a state"):
                tool.build(case, variant, folder)
            continue
        tool.build(case, variant, folder)
        session = tool.open(case, variant, folder, 1)
        session.run()
        (found,) = session.outputs()
        (expected,) = case.outputs("expected")
        assert sqnr(expected, found) > (80 if variant.startswith("float") else 20)


def test_the_fastest_variant_counts(case: Case) -> None:
    made = prepare(case, find_tool("torch"), "torch")
    assert made == {"variant": "float32", "bytes": 0, "tried": {}}


def test_a_tool_that_fails_says_why(case: Case) -> None:
    (case.folder / "weights.pt").unlink()
    assert "weights.pt" in str(prepare(case, find_tool("torch"), "torch")["failed"])
