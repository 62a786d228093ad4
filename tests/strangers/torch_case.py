"""A PyTorch module as a case: its own results, and those of its fake quantization."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from tests.strangers.check import Case, relative_error
from tests.strangers.fake_quantization import FakeQuantization
from tests.strangers.stranger import TorchCase
from tests.strangers.weights import settle


def make_case(built: TorchCase) -> Case:
    """Settle the weights, and run the model as it is and with its layers rounded to 8 bits."""
    torch.backends.mha.set_fastpath_enabled(False)  # one op in PyTorch, which hides its layers
    settle(built.model, built.samples)
    parameters = dict(built.model.named_parameters()) | dict(built.model.named_buffers())
    mode = FakeQuantization(parameters)
    with torch.no_grad():
        expected = arrays(built.model(*built.inputs))
        with mode, torch.backends.mkldnn.flags(enabled=False):  # whose recurrent nets are one op
            fake = arrays(built.model(*built.inputs))
    return Case(
        load=lambda: _load(built),
        runs=[arrays(built.inputs)],
        expected=[expected],
        fake=[fake],
        weights=mode.names,
        own_error=lambda: _own_error(built, expected),
    )


def _own_error(built: TorchCase, expected: list[np.ndarray]) -> float:
    """Return how far float32 is from float64, where the model runs in float64."""
    try:
        model = copy.deepcopy(built.model).double()
        given = tree_map_only(torch.Tensor, _wide, built.inputs)
        with torch.no_grad():
            wide = arrays(model(*given))
    except Exception:
        return 0.0
    return max(relative_error(*pair) for pair in zip(expected, wide, strict=True))


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _load(built: TorchCase) -> Any:
    import fewbit

    return fewbit.import_model(built.model, built.inputs)


def arrays(values: Any) -> list[np.ndarray]:
    """Return the tensors of a nested result, in order."""
    leaves = tree_leaves(values)
    return [leaf.detach().numpy().copy() for leaf in leaves if isinstance(leaf, torch.Tensor)]
