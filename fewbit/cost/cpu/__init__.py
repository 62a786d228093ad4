"""The cost of a layer, known beforehand: `docs/cost-model.md` says how.

`layer_times` gives the time of each layer of a program, at each width of its weight.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewbit.cost.cpu.calibration import Bounds, Calibration
    from fewbit.cost.cpu.kernel_call import ImageSizes, KernelCall, MatrixSizes
    from fewbit.cost.cpu.layers import LayerTime, layer_times
    from fewbit.cost.cpu.store import load_calibration

__all__ = [
    "Bounds",
    "Calibration",
    "ImageSizes",
    "KernelCall",
    "LayerTime",
    "MatrixSizes",
    "layer_times",
    "load_calibration",
]

_HOMES = {
    "Bounds": "calibration",
    "Calibration": "calibration",
    "ImageSizes": "kernel_call",
    "KernelCall": "kernel_call",
    "MatrixSizes": "kernel_call",
    "LayerTime": "layers",
    "layer_times": "layers",
    "load_calibration": "store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
