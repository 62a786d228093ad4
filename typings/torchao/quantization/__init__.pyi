from enum import Enum

import torch
from torch import Tensor, nn
from torchao.quantization.granularity import Granularity
from torchao.utils import TorchAOBaseTensor

class MappingType(Enum):
    SYMMETRIC = ...
    ASYMMETRIC = ...

class BaseConfig: ...

class Int8WeightOnlyConfig(BaseConfig):
    def __init__(self, *, granularity: Granularity = ...) -> None: ...

class IntxWeightOnlyConfig(BaseConfig):
    def __init__(
        self,
        *,
        weight_dtype: torch.dtype = ...,
        granularity: Granularity = ...,
        mapping_type: MappingType = ...,
        intx_choose_qparams_algorithm: str = ...,
    ) -> None: ...

class Int8Tensor(TorchAOBaseTensor):
    qdata: Tensor
    scale: Tensor
    zero_point: Tensor | None

class IntxUnpackedToInt8Tensor(TorchAOBaseTensor):
    qdata: Tensor
    scale: Tensor
    zero_point: Tensor
    target_dtype: torch.dtype

def quantize_(model: nn.Module, config: BaseConfig) -> None: ...
