"""`fewbit.jit`: compiled when called, once for each shape, and gone without a trace."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.errors import UnsupportedError


@pytest.fixture(scope="module")
def net() -> nn.Module:
    manual_seed(0)
    return nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4)).eval()


def expected(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return net(x)


def test_gives_what_it_is_given(net: nn.Module) -> None:
    fast = fewbit.jit(net)
    x = torch.randn(3, 8)
    got = fast(x)
    torch.testing.assert_close(got, expected(net, x))
    array = fast(x.numpy())
    assert type(array) is np.ndarray
    np.testing.assert_array_equal(array, got.numpy())
    assert fast.versions == 1


def test_new_shapes_compile_again(net: nn.Module) -> None:
    fast = fewbit.jit(net, (torch.randn(1, 8),))
    assert fast.versions == 1
    for batch in (1, 2, 1):
        x = torch.randn(batch, 8)
        torch.testing.assert_close(fast(x), expected(net, x))
    assert fast.versions == 2


def test_one_version_serves_dynamic_shapes(net: nn.Module) -> None:
    fast = fewbit.jit(net, dynamic_shapes=({0: torch.export.Dim("n")},))
    for batch in (2, 5, 9):
        x = torch.randn(batch, 8)
        torch.testing.assert_close(fast(x), expected(net, x))
    assert fast.versions == 1


def test_recipe(net: nn.Module) -> None:
    x = torch.randn(3, 8)
    program = fewbit.quantize(fewbit.import_model(net, (x,)), "w4a8")
    (want,) = program.run(x.numpy())
    got = fewbit.jit(net, recipe="w4a8")(x.numpy())
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_function_with_constants_and_structure() -> None:
    @fewbit.jit
    def scale(x: Any, *, by: int = 2) -> dict[str, Any]:
        return {"x": x * by, "none": None, "pair": [x + 1]}

    x = torch.randn(4)
    for by in (2, 3):
        got = scale(x, by=by)
        torch.testing.assert_close(got["x"], x * by)
        torch.testing.assert_close(got["pair"], [x + 1])
        assert got["none"] is None
    assert scale.versions == 2
    assert getattr(scale, "__name__", None) == "scale"


def test_program() -> None:
    text = "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {\n func.return %x : tensor<?xf32>\n}"
    fast = fewbit.jit(fewbit.Program(fewbit.parse(text)))
    for size in (1, 4):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(fast(x), x)
    assert fast.versions == 1


def test_training_mode_is_left_alone() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout()).train()
    x = torch.randn(2, 4)
    torch.testing.assert_close(fewbit.jit(net)(x), net[0](x).detach())
    assert net.training


def test_state_is_refused() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count: torch.Tensor
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return x * self.count

    counter = Counter()
    with pytest.raises(UnsupportedError, match="updates buffers"):
        fewbit.jit(counter)(torch.ones(2))
    assert counter.count == 0


def test_leaves_no_files(net: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fast = fewbit.jit(net)
    fast(torch.randn(1, 8))
    assert not list(tmp_path.iterdir())
    assert fast(torch.randn(1, 8)).shape == (1, 4)
