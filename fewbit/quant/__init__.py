"""Quantization: recipes, QAT, calibration. Names are loaded when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fewbit.quant.attention_scheme import AttentionScheme
    from fewbit.quant.calibration import Calibration
    from fewbit.quant.given import given_weight
    from fewbit.quant.gptq import gptq
    from fewbit.quant.recipe import Recipe
    from fewbit.quant.scheme import LayerScheme
    from fewbit.quant.torch.attention import QuantAttention, fake_quant_attention
    from fewbit.quant.torch.calibration import calibrate
    from fewbit.quant.torch.prepare import (
        convert,
        prepare_qat,
        quantizable_layers,
        recipe_of,
        set_exact,
        unprepare,
    )

__all__ = [
    "AttentionScheme",
    "Calibration",
    "LayerScheme",
    "QuantAttention",
    "Recipe",
    "calibrate",
    "convert",
    "fake_quant_attention",
    "given_weight",
    "gptq",
    "prepare_qat",
    "quantizable_layers",
    "recipe_of",
    "set_exact",
    "unprepare",
]

_HOMES = {
    "AttentionScheme": "fewbit.quant.attention_scheme",
    "Calibration": "fewbit.quant.calibration",
    "LayerScheme": "fewbit.quant.scheme",
    "QuantAttention": "fewbit.quant.torch.attention",
    "Recipe": "fewbit.quant.recipe",
    "calibrate": "fewbit.quant.torch.calibration",
    "convert": "fewbit.quant.torch.prepare",
    "fake_quant_attention": "fewbit.quant.torch.attention",
    "given_weight": "fewbit.quant.given",
    "gptq": "fewbit.quant.gptq",
    "prepare_qat": "fewbit.quant.torch.prepare",
    "quantizable_layers": "fewbit.quant.torch.prepare",
    "recipe_of": "fewbit.quant.torch.prepare",
    "set_exact": "fewbit.quant.torch.prepare",
    "unprepare": "fewbit.quant.torch.prepare",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fewbit.quant' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
