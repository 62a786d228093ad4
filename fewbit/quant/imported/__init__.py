"""Models that other tools have quantized: a plain float model, and the weights as they are.

One file for each tool. None of the tools is needed to import this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fewbit.quant.imported.brevitas import from_brevitas
    from fewbit.quant.imported.checkpoint import from_checkpoint
    from fewbit.quant.imported.plain import Imported
    from fewbit.quant.imported.torchao import from_torchao

__all__ = ["Imported", "from_brevitas", "from_checkpoint", "from_torchao"]

_HOMES = {
    "Imported": "fewbit.quant.imported.plain",
    "from_brevitas": "fewbit.quant.imported.brevitas",
    "from_checkpoint": "fewbit.quant.imported.checkpoint",
    "from_torchao": "fewbit.quant.imported.torchao",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fewbit.quant.imported' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
