from torch import Tensor, nn

class QuantWeightMixin(nn.Module):
    def quant_weight(self) -> Tensor: ...
