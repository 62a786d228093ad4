"""`torch_compile(backend="fewbit")`: the same values as PyTorch, or PyTorch itself and a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import torch
from torch import nn

from fewbit import torch_backend
from fewbit.base.typed_torch import manual_seed
from fewbit.errors import Error, UnsupportedError, UsageError
from fewbit.models.registry import create
from fewbit.torch_backend import EagerWarning

torch_compile: Callable[..., Any] = cast(Any, torch).compile
dynamo: Any = importlib.import_module("torch._dynamo")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing compiled and nothing warned of yet."""
    monkeypatch.setattr(torch_backend, "_warned", set[str]())
    dynamo.reset()
    manual_seed(0)
    yield
    dynamo.reset()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of first inputs for which something was compiled."""
    shapes: list[tuple[int, ...]] = []
    original = cast(Any, torch_backend.Jit)._compile

    def record(self: Any, leaves: list[Any], structure: Any) -> Any:
        version = original(self, leaves, structure)
        shapes.append(tuple(leaves[0].shape))
        return version

    monkeypatch.setattr(torch_backend.Jit, "_compile", record)
    return shapes


def check(
    model: Callable[..., Any], *inputs: Any, fast: Callable[..., Any] | None = None, **options: Any
) -> Any:
    """Both give the same; a warning is an error unless the caller expects it."""
    run = torch_compile(model, backend="fewbit", **options) if fast is None else fast
    with torch.no_grad():
        torch.testing.assert_close(run(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)
    return run


@pytest.mark.filterwarnings("error::fewbit.torch_backend.EagerWarning")
def test_lenet(compiled: list[tuple[int, ...]]) -> None:
    x = torch.randn(1, 1, 28, 28)
    lenet = create("lenet")
    fast = check(lenet, x)
    check(lenet, x + 1, fast=fast)
    assert compiled == [(1, 1, 28, 28)]


@pytest.mark.slow
@pytest.mark.filterwarnings("error::fewbit.torch_backend.EagerWarning")
def test_transformer_of_any_size_is_compiled_once(
    compiled: list[tuple[int, ...]],
) -> None:
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
        fast = check(layer, torch.randn(2, 5, 16), dynamic=True)
        check(layer, torch.randn(3, 7, 16), fast=fast)
    finally:
        torch.backends.mha.set_fastpath_enabled(was)
    assert compiled == [(2, 5, 16)]


class Middle(nn.Module):
    """An op that cannot be compiled, between two parts that can."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.last = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = torch.svd(self.first(x).relu())[1]
        return self.last(values)


def test_op_that_cannot_be_compiled_runs_in_torch(compiled: list[tuple[int, ...]]) -> None:
    model = Middle()
    with pytest.warns(EagerWarning, match=r"'aten\._linalg_svd\.default'"):
        fast = check(model, torch.randn(5, 4))
    assert compiled == [(5, 4), (3,)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", EagerWarning)  # once is enough
        check(model, torch.randn(5, 4), fast=fast)
    assert compiled == [(5, 4), (3,)]


@pytest.mark.filterwarnings("error::fewbit.torch_backend.EagerWarning")
def test_updates_in_place_of_intermediates() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        y.add_(1)
        y[0] = 0
        return y, y.sum()

    check(f, torch.randn(3, 4))


def test_updates_in_place_of_inputs_run_in_torch() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    x = torch.zeros(3)
    with pytest.warns(EagerWarning, match="in place"):
        y = torch_compile(f, backend="fewbit")(x)
    assert torch.equal(x, torch.ones(3))
    assert torch.equal(y, 2 * torch.ones(3))


@pytest.mark.filterwarnings("error::fewbit.torch_backend.EagerWarning")
@pytest.mark.parametrize("dynamic", [None, True])
def test_several_outputs_and_such_as_are_no_tensors(dynamic: bool | None) -> None:
    def f(x: torch.Tensor, k: int) -> dict[str, Any]:
        y = x.exp()
        return {"y": y, "same": y, "n": x.shape[0] * 3, "none": None, "k": k, "pair": (y + 1, "a")}

    fast = torch_compile(f, backend="fewbit", dynamic=dynamic)
    x = torch.randn(3, 4)
    got, want = fast(x, 2), f(x, 2)
    torch.testing.assert_close([got["y"], got["pair"][0]], [want["y"], want["pair"][0]])
    assert got["same"] is got["y"]
    assert (got["n"], got["none"], got["k"], got["pair"][1]) == (9, None, 2, "a")


@pytest.mark.filterwarnings("error::fewbit.torch_backend.EagerWarning")
def test_views_of_inputs_stay_views() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.view(-1), x.exp()

    x = torch.zeros(2, 2)
    view, _ = torch_compile(f, backend="fewbit")(x)
    view.fill_(7)
    assert torch.equal(x, 7 * torch.ones(2, 2))


@pytest.mark.slow
@pytest.mark.filterwarnings("error::fewbit.torch_backend.EagerWarning")
def test_changed_weights_are_seen() -> None:
    model = nn.Linear(4, 3)
    x = torch.randn(2, 4)
    fast = check(model, x)
    with torch.no_grad():
        model.weight.mul_(2)
    check(model, x, fast=fast)
    model.load_state_dict(nn.Linear(4, 3).state_dict())
    check(model, x, fast=fast)


@pytest.mark.filterwarnings("error::fewbit.torch_backend.EagerWarning")
def test_inference_mode() -> None:
    with torch.inference_mode():
        check(nn.Linear(4, 3), torch.randn(2, 4))


def test_gradients_are_torchs() -> None:
    model = nn.Linear(4, 3)
    x = torch.randn(2, 4)
    with pytest.warns(EagerWarning, match="no_grad"):
        torch_compile(model, backend="fewbit")(x).sum().backward()
    assert model.weight.grad is not None


def test_batch_norm_in_training_keeps_its_statistics() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    twin = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    twin.load_state_dict(model.state_dict())
    x = torch.randn(8, 4)
    with torch.no_grad(), pytest.warns(EagerWarning):
        torch_compile(model, backend="fewbit")(x)
    twin(x)
    torch.testing.assert_close(model[1].running_mean, twin[1].running_mean)


@pytest.mark.filterwarnings("error::fewbit.torch_backend.EagerWarning")
def test_recipe_as_an_option() -> None:
    model = nn.Linear(64, 8)
    x = torch.randn(2, 64)
    fast = torch_compile(model, backend="fewbit", options={"recipe": "w4a8"})
    with torch.no_grad():
        error = (fast(x) - model(x)).abs().max()
    assert 1e-4 < error < 0.5


def test_unknown_option_is_an_error() -> None:
    fast = torch_compile(nn.Linear(4, 3), backend="fewbit", options={"bits": 4})
    with pytest.raises(Exception, match="there is no option 'bits'") as caught, torch.no_grad():
        fast(torch.randn(2, 4))
    assert isinstance(getattr(caught.value, "inner_exception", caught.value), UsageError)


@pytest.mark.parametrize("options", [{"recipe": "w99a8"}, {"threads": 0}])
def test_a_wrong_value_is_an_error(options: dict[str, Any]) -> None:
    fast = torch_compile(nn.Linear(4, 3), backend="fewbit", options=options)
    with pytest.raises(Exception, match=r"99 bits|0 threads") as caught, torch.no_grad():
        fast(torch.randn(2, 4))
    assert isinstance(getattr(caught.value, "inner_exception", caught.value), Error)


def test_torch_lists_the_backend() -> None:
    assert "fewbit" in dynamo.list_backends()


def test_report_tells_what_runs_where() -> None:
    torch_backend.clear_report()
    model = Middle()
    with pytest.warns(EagerWarning, match=r"ops are compiled, in 2 parts; in PyTorch: aten\._lin"):
        check(model, torch.randn(5, 4))
    (graph,) = torch_backend.report()
    assert [part.is_compiled for part in graph.leaves()] == [True, False, True]
    assert list(graph.reasons) == ["aten._linalg_svd.default"]
    assert graph.compiled_ops + sum(graph.reasons.values()) == graph.ops
    assert "graph 0: " in str(torch_backend.report())


@pytest.mark.filterwarnings("error::fewbit.torch_backend.EagerWarning")
def test_report_of_what_is_compiled_whole() -> None:
    torch_backend.clear_report()
    check(nn.Linear(3, 2), torch.randn(1, 3))
    (graph,) = torch_backend.report()
    assert graph.compiled_ops == graph.ops
    assert str(graph).endswith("in 1 part")


def test_an_error_without_a_name_cuts_the_graph_in_two(
    monkeypatch: pytest.MonkeyPatch, compiled: list[tuple[int, ...]]
) -> None:
    torch_backend.clear_report()
    original = cast(Any, torch_backend.Jit)._compile

    def refuse_cosine(self: Any, leaves: list[Any], structure: Any) -> Any:
        calls = [node for node in self.model.graph.nodes if node.op.startswith("call")]
        if any("cos" in str(node.target) for node in calls):
            raise UnsupportedError("something is not supported")
        return original(self, leaves, structure)

    monkeypatch.setattr(torch_backend.Jit, "_compile", refuse_cosine)

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(torch.exp(x)).tanh().cos().sigmoid() * 3

    with pytest.warns(EagerWarning, match="something is not supported"):
        check(f, torch.randn(4))
    (graph,) = torch_backend.report()
    assert graph.reasons == {"something is not supported": 1}
    assert graph.compiled_ops == graph.ops - 1


def test_writes_in_place_are_seen_through_views_of_another_part() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.exp()
        flat = y.view(-1)
        values = torch.svd(x)[1]
        y.add_(values.sum())
        return flat, y

    with pytest.warns(EagerWarning):
        check(f, torch.randn(3, 3))


def test_a_wrong_recipe_is_not_tried_on_parts(compiled: list[tuple[int, ...]]) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    with pytest.warns(EagerWarning):
        check(model, torch.randn(1, 4), options={"recipe": "w8a8,nolayer=w4a8"})
    assert compiled == []
