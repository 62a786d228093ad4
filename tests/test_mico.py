"""MiCo's own interface."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from fewbit.base.typed_torch import manual_seed
from fewbit.errors import UsageError
from fewbit.mico import (
    MiCoMLIRGen,
    MiCoTorchMLIRGen,
    fuse_model,
    load_program,
    set_qscheme,
    unset_qscheme,
)
from fewbit.models import LeNet

SCHEME = [[8, 6, 6, 4, 4], [8, 8, 8, 8, 8]]
X = torch.linspace(-1, 1, 784).reshape(1, 1, 28, 28)


def test_program_computes_what_the_model_does(tmp_path: Path) -> None:
    manual_seed(0)
    model = fuse_model(LeNet(1).set_qscheme(SCHEME)).eval()
    generator = MiCoMLIRGen(model)
    expected = generator.forward(X).numpy()
    program = load_program(generator.convert(tmp_path, "lenet"))
    program.verify()
    (given,) = program.run(X.numpy())
    assert np.abs(given - expected).max() / np.abs(expected).max() < 1e-5
    assert "!mico.int<6>" in program.text()


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(torch.relu(self.bn(self.conv(x))).mean((2, 3)))


def test_scheme_before_and_after_fusion_is_the_same(tmp_path: Path) -> None:
    manual_seed(0)
    model = Normed()
    model(torch.randn(16, 1, 8, 8))
    x = torch.randn(2, 1, 8, 8)
    texts: list[str] = []
    for first, second in ((set_scheme, fuse), (fuse, set_scheme)):
        made = second(first(_copy(model))).eval()
        generator = MiCoMLIRGen(made)
        generator.forward(x)
        texts.append(Path(generator.convert(tmp_path, "net")).read_text())
    assert texts[0] == texts[1]
    assert "batch_norm" not in texts[0]


def set_scheme(model: nn.Module) -> nn.Module:
    return set_qscheme(model, [[4, 8], [8, 8]])


def fuse(model: nn.Module) -> nn.Module:
    return fuse_model(model.eval())


def _copy(model: nn.Module) -> nn.Module:
    copy = Normed()
    copy.load_state_dict(model.state_dict())
    return copy.eval()


def test_scheme_can_be_taken_back() -> None:
    manual_seed(0)
    model = LeNet(1).eval()
    before = model(X)
    set_qscheme(model, SCHEME)
    assert not torch.equal(model(X), before)
    unset_qscheme(model)
    assert torch.equal(model(X), before)


@pytest.mark.parametrize("scheme", [[[8], [8]], [[8] * 5, [8] * 4], [[8] * 5], [[9] * 5, [8] * 5]])
def test_wrong_schemes_are_refused(scheme: list[list[int]]) -> None:
    with pytest.raises(Exception, match=r"\d"):
        set_qscheme(LeNet(1), scheme)


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="forward"):
        MiCoMLIRGen(LeNet(1)).convert("nowhere", "x")
    with pytest.raises(UsageError, match="onnx"):
        MiCoTorchMLIRGen(LeNet(1), output_type="onnx")
