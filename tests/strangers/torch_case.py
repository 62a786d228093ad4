"""A PyTorch module as a case: its own results, and those of its fake quantization."""

from __future__ import annotations

from typing import Any

import torch

from tests.precisions import arrays, in_both_precisions
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
        own_error=lambda: _own_error(built),
    )


def _own_error(built: TorchCase) -> float:
    """Return how far float32 is from float64, where the model runs in float64."""
    try:
        pairs = in_both_precisions(built.model, built.inputs)
    except Exception:
        return 0.0
    return max(relative_error(*pair) for pair in pairs)


def _load(built: TorchCase) -> Any:
    import fewbit

    return fewbit.import_model(built.model, built.inputs)
