"""Ops that torch-mlir lowers: types that nodes tell need not be inferred."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from fewbit.frontends.torch.islands import INFERRED, TYPED, lower_with

OPS: dict[str, Callable[[Tensor], Tensor]] = {
    "remainder": lambda x: torch.remainder(x, 3),
    "variance": lambda x: x.var(dim=1),
    "where": lambda x: torch.where(x > 0, x, x.abs()),
    "nearest": lambda x: nn.functional.interpolate(x[None], size=9),
    "clamped": lambda x: x.clamp(-1, 2).neg(),
    "integers": lambda x: x.to(torch.int64).floor_divide(2),
    "largest": lambda x: x.amax(1),
    "argmax": lambda x: x.argmax(1),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("op", OPS)
def test_with_and_without_inferred_types(op: str, dynamic: bool) -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return OPS[op](x)

    sizes = {"x": {0: Dim("batch", min=2, max=64)}} if dynamic else None
    exported: Any = torch.export.export(Net(), (torch.zeros(3, 5),), dynamic_shapes=sizes)
    graph = exported.run_decompositions().graph
    nodes = {
        node.name: node
        for node in graph.nodes
        if node.op == "call_function" and isinstance(node.meta.get("val"), Tensor)
    }
    found = lower_with(TYPED, nodes)
    assert found is not None
    assert found == lower_with(INFERRED, nodes)
