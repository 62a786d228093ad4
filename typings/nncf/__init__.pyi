from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, TypeVar

from openvino import Model

_Sample = TypeVar("_Sample")

class ModelType(Enum):
    TRANSFORMER = "transformer"

class CompressWeightsMode(Enum):
    INT8_ASYM = "int8_asym"

class Dataset:
    def __init__(
        self, data_source: Iterable[_Sample], transform_func: Callable[[_Sample], Any]
    ) -> None: ...

def quantize(
    model: Model,
    calibration_dataset: Dataset,
    *,
    subset_size: int = 300,
    model_type: ModelType | None = None,
) -> Model: ...
def compress_weights(model: Model, *, mode: CompressWeightsMode) -> Model: ...
