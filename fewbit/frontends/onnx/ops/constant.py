"""Constants that stand in the graph."""

from __future__ import annotations

import torch

from fewbit.frontends.onnx.kinds import FLOAT, INT64
from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import Known


@op("Constant")
def constant(call: Call) -> Known:
    for name, value in call.attributes.items():
        if isinstance(value, Known):
            return Known(value.tensor, value.kind)
        if name in ("value_float", "value_floats"):
            return Known(torch.tensor(value, dtype=torch.float32), FLOAT)
        if name in ("value_int", "value_ints"):
            return Known(torch.tensor(value, dtype=torch.int64), INT64)
    raise call.refusal("its value is no tensor of numbers")
