# What a layer quantizes by is a class, which brevitas reads and never makes an instance of.
from brevitas.nn.mixin import QuantWeightMixin
from torch import nn

class QuantLinear(QuantWeightMixin, nn.Linear):
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        weight_quant: type | None = ...,
        weight_bit_width: int = ...,
        input_quant: type | None = None,
    ) -> None: ...

class QuantConv2d(QuantWeightMixin, nn.Conv2d):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        *,
        weight_quant: type | None = ...,
        weight_bit_width: int = ...,
    ) -> None: ...

class QuantReLU(nn.Module): ...
