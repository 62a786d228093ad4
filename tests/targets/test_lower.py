"""`lower` stops on the way that `compile` goes: the text after a stage is the same, for any options."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fewbit
from fewbit.program.program import Program
from fewbit.targets.compile import lower
from fewbit.targets.registry import find_target
from tests.targets.cuda.test_target import needs_nvrtc

Options = Callable[[Program, Path], dict[str, Any]]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1)
        self.fc = nn.Linear(8, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(torch.relu(self.conv(x)).mean((2, 3)))
        return torch.softmax(y @ y.T, -1)


@cache
def program(recipe: str | None) -> Program:
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    plain = fewbit.import_model(Net(), (torch.randn(3, 4, 6, 6),))
    return plain if recipe is None else fewbit.quantize(plain, recipe)


def untuned(_: Program, __: Path) -> dict[str, Any]:
    return {"tuning_db": "none"}


def nothing(_: Program, __: Path) -> dict[str, Any]:
    return {}


def profiled(_: Program, __: Path) -> dict[str, Any]:
    return {"profile": True, "tuning_db": "none"}


def tuned_cpu(made: Program, folder: Path) -> dict[str, Any]:
    """A database with another tile than the usual one."""
    from fewbit.tune.cpu import key_of
    from fewbit.tune.database import Database, Result
    from fewbit.tune.schedule import Schedule

    schedule = Schedule((128,), (1, 1))
    result = Result(key_of(made), schedule, 0.5, 0.01, 1e-3, 1, "measured")
    Database(folder / "tuning.db").put(result)
    return {"tuning_db": str(folder / "tuning.db")}


def with_blas(_: Program, __: Path) -> dict[str, Any]:
    from fewbit.errors import Error
    from fewbit.toolchain.cblas import find_blas

    try:
        find_blas("openblas")
    except Error as e:
        pytest.skip(str(e))
    return {"blas": "openblas", "tuning_db": "none"}


def compiled_stages(
    made: Program, target: str, folder: Path, options: dict[str, Any]
) -> dict[str, str]:
    shown: dict[str, str] = {}
    watch = shown.__setitem__
    fewbit.compile(made, target, folder / "net", name="net", watch=watch, **options)
    return shown


def check(made: Program, target: str, folder: Path, options: dict[str, Any]) -> dict[str, str]:
    """The texts of all stages, if `lower` gives the same ones, and shows them to a watcher too."""
    shown = compiled_stages(made, target, folder, options)
    stages = find_target(target).stages
    assert tuple(shown) == stages
    for number, stage in enumerate(stages):
        seen: dict[str, str] = {}
        text = lower(made, stage, target, name="net", watch=seen.__setitem__, **options)
        assert text == shown[stage], stage
        assert seen == {name: shown[name] for name in stages[: number + 1]}, stage
    return shown


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        pytest.param("w8a8", untuned, marks=pytest.mark.slow),
        pytest.param("w8a8", profiled, marks=pytest.mark.slow),
        pytest.param("w8a8", tuned_cpu, marks=pytest.mark.slow),
        pytest.param(None, profiled, marks=pytest.mark.slow),
        pytest.param(None, tuned_cpu, marks=pytest.mark.slow),
        (None, with_blas),
    ],
)
def test_cpu(recipe: str | None, options: Options, tmp_path: Path) -> None:
    made = program(recipe)
    given = options(made, tmp_path)
    shown = check(made, "cpu", tmp_path, given)
    if options is not untuned:
        plain = compiled_stages(made, "cpu", tmp_path / "plain", untuned(made, tmp_path))
        assert plain["object"] != shown["object"], "the option has no effect on this program"


@needs_nvrtc
def test_cuda(tmp_path: Path) -> None:
    """The settings are those that a search found, and the machine has no GPU."""
    from fewbit.kernels.cuda.arch import HOPPER
    from fewbit.tune.cuda.layers import layer_key, layers_of
    from fewbit.tune.database import Database, Result

    made = program(None)
    layer = next(each for each in layers_of(made, HOPPER)[0] if each.problem.operations > 0)
    schedule = layer.rank()[0][1]
    database = Database(tmp_path / "tuning.db")
    key = layer_key(layer.problem, HOPPER)
    database.put(Result(key, schedule, 0.5, 0.0, 1e-5, 3, "measured"))
    shown = check(made, "cuda:sm_90", tmp_path, {"tuning_db": str(database.path)})
    plain = compiled_stages(made, "cuda:sm_90", tmp_path / "plain", {"tuning_db": "none"})
    assert shown["cuda"] != plain["cuda"]


@pytest.mark.parametrize("target", ["vexii", "gemmini", "bitfusion"])
def test_simulated_hardware(target: str, tmp_path: Path) -> None:
    check(program("w4a8"), target, tmp_path, {})


@pytest.mark.slow
def test_iree(tmp_path: Path) -> None:
    pytest.importorskip("iree.compiler")
    check(program("w8a8"), "iree-cpu", tmp_path, {"tuning_db": "none"})


@pytest.mark.slow
def test_iree_with_tiles_that_a_search_found(tmp_path: Path) -> None:
    pytest.importorskip("iree.compiler")
    from fewbit.cost.hardware.host import host
    from fewbit.targets.iree.pipeline import to_iree
    from fewbit.toolchain.iree_devices import compile_flags
    from fewbit.tune.database import Database, Result
    from fewbit.tune.iree.build import build
    from fewbit.tune.iree.tuning import key_of
    from fewbit.tune.schedule import Schedule

    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(8, 32, 3), nn.ReLU())
    made = fewbit.import_model(net, (torch.randn(1, 8, 10, 10),))
    source, _ = to_iree(made)
    built = build(source, compile_flags("iree-cpu"), "net")
    (dispatch,) = (each for each in built.dispatches if each.reason is None)
    tiles = Schedule((8, 8, 32, 0, 0, 0), (1, 4, 32, 1, 1, 2))
    database = Database(tmp_path / "tuning.db")
    database.put(Result(key_of(dispatch, host()), tiles, 0.5, 0.01, 1e-6, 1, "analytic"))
    shown = check(made, "iree-cpu", tmp_path, {"tuning_db": str(database.path)})
    plain = compiled_stages(made, "iree-cpu", tmp_path / "plain", {"tuning_db": "none"})
    assert shown["vm"] != plain["vm"]
