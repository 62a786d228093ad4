from enum import Enum
from typing import Any

from numpy import ndarray
from onnxruntime.quantization import shape_inference as shape_inference

class QuantType(Enum):
    QInt8 = 0
    QUInt8 = 1

class QuantFormat(Enum):
    QOperator = 0
    QDQ = 1

class CalibrationDataReader:
    def get_next(self) -> dict[str, ndarray[Any, Any]] | None: ...

def quantize_dynamic(
    model_input: str, model_output: str, *, weight_type: QuantType = ...
) -> None: ...
def quantize_static(
    model_input: str,
    model_output: str,
    calibration_data_reader: CalibrationDataReader,
    quant_format: QuantFormat = ...,
    *,
    per_channel: bool = False,
    activation_type: QuantType = ...,
    weight_type: QuantType = ...,
) -> None: ...
