from torchao.quantization import BaseConfig

class PrototypeInt4WeightOnlyConfig(BaseConfig):
    def __init__(self, group_size: int = 128) -> None: ...
