"""Models by name, with all that is needed to run and export one.

An entry gives the factory, inputs to try it on, and which dimensions may vary. `create` seeds the
weights without touching torch's global generator. It then lets batch norm see random inputs once:
with statistics of 0 and 1 a deep random network's outputs would hardly depend on its input, and
mistakes in folding them would not show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from fewbit.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.export import Dim

SETTLING_BATCH = 4


@dataclass(frozen=True)
class ZooEntry:
    """A model of the zoo."""

    name: str
    description: str
    factory: Callable[[], nn.Module]
    """Makes the model, with weights drawn from torch's global generator."""
    shape: tuple[int, ...]
    """The shape of one input, without the batch."""
    free: tuple[int, ...] = ()
    """Dimensions of `shape` that may have another extent: an image's sides, a sequence."""
    vocabulary: int | None = None
    """For inputs that are tokens, how many there are; None where inputs are floats."""
    longest: int | None = None
    """The longest sequence, where its length may differ from call to call."""
    is_step: bool = False
    """Whether a call is one step of a sequence: a token and its position, with a state in buffers
    of the model and a batch of 1."""

    def example_inputs(
        self, batch: int = 1, *, extent: int | None = None, seed: int = 0
    ) -> tuple[Tensor, ...]:
        """Random inputs; `extent` replaces the image's sides or the sequence's length."""
        import torch

        if self.is_step and batch != 1:
            raise UsageError(f"'{self.name}' has the state of one sequence: its batch is 1")
        shape = list(self.shape)
        if extent is not None:
            if not self.free:
                raise UsageError(f"'{self.name}' takes inputs of one shape only: {self.shape}")
            for dim in self.free:
                shape[dim] = extent
        generator = torch.Generator().manual_seed(seed)
        if self.vocabulary is not None:
            tokens = torch.randint(self.vocabulary, (batch, *shape), generator=generator)
            if self.is_step and self.longest is not None:
                return tokens, torch.tensor([self.longest // 2])
            return (tokens,)
        return (torch.randn(batch, *shape, generator=generator),)

    @property
    def dynamic_shapes(self) -> dict[str, dict[int, Dim]] | None:
        """For `torch.export`, with inputs of a batch of 2 or more: it takes 1 for a constant."""
        from torch.export import Dim

        if self.is_step:
            return None
        if self.longest is None:
            return {"x": {0: Dim("batch")}}
        return {"tokens": {0: Dim("batch"), 1: Dim("sequence", max=self.longest)}}


def zoo() -> dict[str, ZooEntry]:
    """All models, by name."""
    return dict(_ENTRIES)


def create(name: str, seed: int = 0) -> nn.Module:
    """The model of that name with random weights, the same for the same seed, ready to run."""
    import torch

    entry = find_entry(name)
    with torch.random.fork_rng(devices=[]):  # pyright: ignore[reportUnknownMemberType]
        torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
        model = entry.factory()
        _settle_batch_norm(model, entry, seed)
    return model.eval()


def find_entry(name: str) -> ZooEntry:
    """The entry of that name; `_` and `-` are the same."""
    key = name.lower().replace("_", "-")
    if key in _ENTRIES:
        return _ENTRIES[key]
    close = get_close_matches(key, _ENTRIES, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(_ENTRIES)}"
    raise UsageError(f"no model of the zoo is called '{name}'", hint=hint)


def _settle_batch_norm(model: nn.Module, entry: ZooEntry, seed: int) -> None:
    import torch
    from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    usual = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = None  # a plain average, so one batch decides
    with torch.no_grad():
        model.train()(*entry.example_inputs(SETTLING_BATCH, seed=seed))
    for norm, momentum in zip(norms, usual, strict=True):
        norm.momentum = momentum


def _class(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from fewbit import models

        return getattr(models, name)()

    return make


SIDES = (1, 2)

_ENTRIES = {
    entry.name: entry
    for entry in (
        ZooEntry("mlp", "multilayer perceptron for MNIST", _class("MLP"), (1, 28, 28)),
        ZooEntry("lenet", "LeNet-5 for MNIST", _class("LeNet"), (1, 28, 28)),
        ZooEntry("cmsis-cnn", "CMSIS-NN's CIFAR-10 example", _class("CmsisCNN"), (3, 32, 32)),
        ZooEntry("vgg", "small VGG for CIFAR-10", _class("VGG"), (3, 32, 32)),
        ZooEntry(
            "resnet8", "MLPerf Tiny's ResNet for CIFAR-10", _class("ResNet8"), (3, 32, 32), SIDES
        ),
        ZooEntry("resnet18", "ResNet-18 for ImageNet", _class("ResNet18"), (3, 64, 64), SIDES),
        ZooEntry(
            "mobilenet-v2", "MobileNetV2 for ImageNet", _class("MobileNetV2"), (3, 64, 64), SIDES
        ),
        ZooEntry(
            "squeezenet", "SqueezeNet 1.1 for ImageNet", _class("SqueezeNet"), (3, 64, 64), SIDES
        ),
        ZooEntry("ds-cnn", "MLPerf Tiny's keyword spotter", _class("DSCNN"), (1, 49, 10)),
        ZooEntry(
            "mobilenet-v1-vww",
            "MLPerf Tiny's visual wake words",
            _class("MobileNetV1"),
            (3, 96, 96),
        ),
        ZooEntry("autoencoder", "MLPerf Tiny's anomaly detection", _class("Autoencoder"), (640,)),
        ZooEntry("m5", "1-D convolutions on raw audio", _class("M5"), (1, 8000), (1,)),
        ZooEntry("kws-conv1d", "TC-ResNet8 keyword spotter", _class("KWSConv1d"), (40, 101), (1,)),
        ZooEntry("kwt", "Keyword Transformer KWT-1", _class("KWT"), (98, 40)),
        ZooEntry("vit-tiny", "vision transformer for CIFAR-10", _class("ViTTiny"), (3, 32, 32)),
        ZooEntry("cct", "CCT-2/3x2 for CIFAR-10", _class("CCT"), (3, 32, 32)),
        ZooEntry(
            "llama-tiny",
            "small LLaMa-style language model",
            _class("LlamaTiny"),
            (16,),
            free=(0,),
            vocabulary=512,
            longest=256,
        ),
        ZooEntry(
            "llama-15m",
            "LLaMa of llama2.c's size for small stories",
            _class("Llama"),
            (16,),
            free=(0,),
            vocabulary=32_000,
            longest=256,
        ),
        ZooEntry(
            "llama-15m-decode",
            "one token of llama-15m, with a cache of keys and values",
            _class("LlamaDecode"),
            (1,),
            vocabulary=32_000,
            longest=256,
            is_step=True,
        ),
    )
}
