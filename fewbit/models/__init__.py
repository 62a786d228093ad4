"""The zoo: small networks to compile, each a plain `torch.nn.Module`.

`create("resnet18")` and `zoo()` find models by name; the classes themselves (`fewbit.models.LeNet`)
are imported when first used (PEP 562), so importing this package does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fewbit.models.lenet_program import lenet_text
from fewbit.models.registry import ZooEntry, create, zoo

if TYPE_CHECKING:
    from fewbit.models.autoencoder import Autoencoder
    from fewbit.models.cct import CCT
    from fewbit.models.cmsis_cnn import CmsisCNN
    from fewbit.models.ds_cnn import DSCNN
    from fewbit.models.kws_conv1d import KWSConv1d
    from fewbit.models.kwt import KWT
    from fewbit.models.lenet import LeNet
    from fewbit.models.llama import Llama, LlamaDecode, LlamaTiny
    from fewbit.models.m5 import M5
    from fewbit.models.mlp import MLP
    from fewbit.models.mobilenet_v1 import MobileNetV1
    from fewbit.models.mobilenet_v2 import MobileNetV2
    from fewbit.models.resnet import ResNet8, ResNet18
    from fewbit.models.squeezenet import SqueezeNet
    from fewbit.models.vgg import VGG
    from fewbit.models.vit import ViTTiny

__all__ = [
    "CCT",
    "DSCNN",
    "KWT",
    "M5",
    "MLP",
    "VGG",
    "Autoencoder",
    "CmsisCNN",
    "KWSConv1d",
    "LeNet",
    "Llama",
    "LlamaDecode",
    "LlamaTiny",
    "MobileNetV1",
    "MobileNetV2",
    "ResNet8",
    "ResNet18",
    "SqueezeNet",
    "ViTTiny",
    "ZooEntry",
    "create",
    "lenet_text",
    "zoo",
]

_HOMES = {
    "Autoencoder": "autoencoder",
    "CCT": "cct",
    "CmsisCNN": "cmsis_cnn",
    "DSCNN": "ds_cnn",
    "KWSConv1d": "kws_conv1d",
    "KWT": "kwt",
    "LeNet": "lenet",
    "Llama": "llama",
    "LlamaDecode": "llama",
    "LlamaTiny": "llama",
    "M5": "m5",
    "MLP": "mlp",
    "MobileNetV1": "mobilenet_v1",
    "MobileNetV2": "mobilenet_v2",
    "ResNet18": "resnet",
    "ResNet8": "resnet",
    "SqueezeNet": "squeezenet",
    "VGG": "vgg",
    "ViTTiny": "vit",
}
"""The module of each class."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fewbit.models' has no attribute {name!r}")
    value: object = getattr(import_module(f"fewbit.models.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
