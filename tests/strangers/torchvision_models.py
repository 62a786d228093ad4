"""Models of torchvision: classifiers, segmenters and networks for video.

Detectors are not among them: they suppress boxes with an op whose compiled part is not in a build of
torchvision for another PyTorch, so that not even PyTorch runs them everywhere.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from fewbit.base.typed_torch import manual_seed
from tests.strangers.stranger import Stranger, TorchCase, need


@dataclass(frozen=True)
class TorchvisionModel(Stranger):
    """A name that `torchvision.models.get_model` takes, and the shape of a sample."""

    shape: tuple[int, ...] = (3, 64, 64)
    options: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def build(self, folder: Path) -> TorchCase:
        torchvision = need("torchvision")
        manual_seed(0)
        given = {"weights": None, "weights_backbone": None} | self.options
        if "weights_backbone" not in _arguments(torchvision, self.name):
            given.pop("weights_backbone")
        model = _Tensors(torchvision.models.get_model(self.name, **given))
        return TorchCase(model, (self._sample(1),), tuple((self._sample(4),) for _ in range(3)))

    def _sample(self, batch: int) -> torch.Tensor:
        return torch.rand(batch, *self.shape)


class _Tensors(nn.Module):
    """Gives the tensors of a result, which segmenters put into a dictionary."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> Any:
        return tuple(tree_leaves(self.model(x)))


def _arguments(torchvision: Any, name: str) -> str:
    return str(inspect.signature(torchvision.models.get_model_builder(name)))


def _model(name: str, *shape: int, **options: Any) -> TorchvisionModel:
    return TorchvisionModel("torchvision", name, shape or (3, 64, 64), options)


CLASSIFIERS = [
    _model("alexnet"),
    _model("convnext_tiny"),
    _model("densenet121"),
    _model("efficientnet_b0"),
    _model("efficientnet_v2_s"),
    _model("googlenet", init_weights=True),
    _model("inception_v3", 3, 96, 96, init_weights=True),
    _model("maxvit_t", 3, 224, 224),
    _model("mnasnet0_5"),
    _model("mobilenet_v2"),
    _model("mobilenet_v3_small"),
    _model("regnet_x_400mf"),
    _model("regnet_y_400mf"),
    _model("resnet18"),
    _model("resnext50_32x4d"),
    _model("shufflenet_v2_x0_5"),
    _model("squeezenet1_1"),
    _model("swin_t"),
    _model("swin_v2_t"),
    _model("vgg11_bn"),
    _model("vit_b_16", image_size=64),
    _model("wide_resnet50_2"),
]
SEGMENTERS = [
    _model("deeplabv3_mobilenet_v3_large", num_classes=5),
    _model("deeplabv3_resnet50", num_classes=5),
    _model("fcn_resnet50", num_classes=5),
    _model("lraspp_mobilenet_v3_large", num_classes=5),
]
VIDEO = [
    _model("r3d_18", 3, 4, 32, 32),
    _model("r2plus1d_18", 3, 4, 32, 32),
]
MODELS = [*CLASSIFIERS, *SEGMENTERS, *VIDEO]
