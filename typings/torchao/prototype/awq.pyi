from torchao.quantization import BaseConfig

class AWQConfig(BaseConfig):
    def __init__(self, base_config: BaseConfig, step: str) -> None: ...
