"""All strangers, by their keys: `timm/resnet10t`, `onnx/magika`."""

from __future__ import annotations

from tests.strangers import (
    dynamic_exports,
    onnx_files,
    timm_models,
    torchvision_models,
    transformers_models,
)
from tests.strangers.stranger import Stranger

STRANGERS: list[Stranger] = [
    *timm_models.MODELS,
    *torchvision_models.MODELS,
    *transformers_models.MODELS,
    *onnx_files.FILES,
    *dynamic_exports.EXPORTS,
]
GROUPS = ("timm", "torchvision", "transformers", "onnx", "dynamic")


def find(key: str) -> Stranger:
    """Return the stranger of a key."""
    return next(stranger for stranger in STRANGERS if stranger.key == key)
