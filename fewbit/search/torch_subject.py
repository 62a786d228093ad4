"""PyTorch modules under search: rounded weights are kept, and swapped in.

The module is prepared once, as for quantization-aware training. What a candidate changes is then
only which activations are rounded how, and which tensor a layer's weight is: the integers of each
weight at each scheme are made once, and kept as the floats that they stand for. Threads have
modules of their own, which share these.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewbit.base.typed_torch import from_numpy
from fewbit.errors import Error, UsageError
from fewbit.numerics import Width
from fewbit.program.program import Program
from fewbit.quant.calibration import Calibration
from fewbit.quant.recipe import Recipe
from fewbit.quant.scheme import LayerScheme
from fewbit.quant.torch.calibration import calibrate
from fewbit.quant.torch.fake_quant import fake_quant_weight
from fewbit.quant.torch.functional import held_tensor, layer_name, weights_of
from fewbit.quant.torch.layers import QuantLayer
from fewbit.quant.torch.prepare import prepare_qat, quantizable_layers
from fewbit.quant.torch.scope import FewBitWeight, QuantScope
from fewbit.search.data import Examples
from fewbit.search.objective import Array
from fewbit.search.space import WIDE, Space
from fewbit.search.static_scales import METHOD, StaticScales
from fewbit.search.subject import ArraySubject, Schemes

BATCH = 256
GRADIENT_BATCH = 16
CALIBRATED = 256
"""Examples that static scales come from."""


class Rounded(Protocol):
    """What computes by a scheme: a layer, or a weight that functions take."""

    scheme: LayerScheme
    act_scale: float | None


class TorchSubject(ArraySubject):
    """A module, with its batch norms folded."""

    kind = "torch"
    can_train = True

    def __init__(
        self, model: nn.Module, program: Program, names: Sequence[str], inputs: Sequence[Any]
    ) -> None:
        """Take a module and its program's layers, and inputs to see which it can round."""
        super().__init__()
        self.program = program
        self.model = model
        self.names = _find_rounded(model, names, inputs)
        self._begin()

    def _begin(self) -> None:
        self._rounded: dict[tuple[str, str], Tensor] = {}
        self._own = threading.local()
        self._originals = {name: tensor.detach() for name, tensor in self._weights(self.model)}

    def outputs(self, schemes: Schemes, part: Examples) -> Array:
        prepared = self._prepared()
        prepared.set(schemes, self._rounded_weight, self.static_scales(schemes))
        return run(prepared.model, part)

    def use_static_scales(self, part: Examples, widths: Iterable[Width]) -> None:
        few = part[slice(0, CALIBRATED)]
        inputs = [tuple(from_numpy(x) for x in few.inputs)]

        def calibrate_model(recipe: Recipe) -> Calibration:
            return calibrate(self.model, inputs, recipe, METHOD)

        self.scales = StaticScales.find(self.names, widths, calibrate_model, few.hash())

    def parts(self) -> Iterable[object]:
        return self.model.modules()

    def __getstate__(self) -> dict[str, Any]:
        """Return what measuring needs: other processes make the rest anew."""
        return {"model": self.model, "names": self.names, "scales": self.scales}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.names, self.scales = state["model"], state["names"], state["scales"]
        self._begin()

    def _weights(self, model: nn.Module) -> Iterator[tuple[str, Tensor]]:
        for name, path in _weight_paths(model).items():
            if name in self.names and (tensor := held_tensor(model, path)) is not None:
                yield name, tensor

    def _prepared(self) -> Prepared:
        """Return this thread's own module."""
        if not hasattr(self._own, "prepared"):
            self._own.prepared = Prepared(self.model, self.names)
        return self._own.prepared

    def _rounded_weight(self, name: str, scheme: LayerScheme) -> Tensor:
        """Return what the integers of a weight stand for; as it is where it stays float."""
        if scheme.weight is None or not _is_kept(scheme):
            return self._originals[name]
        key = name, str(scheme)
        if key not in self._rounded:
            with torch.no_grad():
                self._rounded[key] = fake_quant_weight(self._originals[name], scheme)
        return self._rounded[key]

    def gradient_scores(self, space: Space, part: Examples) -> list[list[float]]:
        """Return the loss that a Taylor expansion expects of each choice of each unit.

        A weight's rounding error counts by the squared gradient; rounding activations, by what the
        same relative error of the weight would do.
        """
        squares = _squared_gradients(self.model, part, dict(self._weights(self.model)))
        rows: list[list[float]] = []
        for unit in space.units:
            names = [layer.name for layer in unit.layers if layer.name in squares]
            rows.append(
                [
                    sum(self._expected(each, s, squares[each]) for each in names)
                    for s in unit.choices
                ]
            )
        return rows

    def _expected(self, name: str, scheme: LayerScheme, square: Tensor) -> float:
        weight = self._originals[name]
        error = self._rounded_weight(name, scheme) - weight
        loss = float((square * error**2).sum())
        if scheme.act is None:
            return loss
        return loss + float((square * weight**2).sum()) * 4.0 ** -float(scheme.act.precision)


class Prepared:
    """A copy of a module whose layers can be given any scheme, again and again."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        self.model = prepare_qat(model, Recipe.by_name(dict.fromkeys(names, WIDE))).eval()
        self.rounded: dict[str, list[Rounded]] = {name: [] for name in names}
        for name, each in _places(self.model):
            if name in self.rounded:
                self.rounded[name].append(each)
        paths = _weight_paths(self.model)
        self.weights = {name: held_tensor(self.model, paths[name]) for name in names}

    def set(
        self,
        schemes: Schemes,
        weight_of: Callable[[str, LayerScheme], Tensor],
        scales: Mapping[str, float],
    ) -> None:
        for name, places in self.rounded.items():
            scheme = schemes.get(name, LayerScheme())
            for each in places:
                each.scheme = _without_weight(scheme) if _is_kept(scheme) else scheme
                each.act_scale = scales.get(name) if scheme.static else None
            weight = self.weights[name]
            assert weight is not None
            weight.data = weight_of(name, scheme)


def run(model: nn.Module, part: Examples) -> Array:
    """Return a model's first output on all examples."""
    pieces: list[Tensor] = []
    with torch.no_grad():
        for start in range(0, len(part), BATCH):
            inputs = [from_numpy(x[start : start + BATCH]) for x in part.inputs]
            output: Any = model(*inputs)
            pieces.append(_first(output).detach())
    return torch.cat(pieces).float().numpy()


def _find_rounded(model: nn.Module, names: Sequence[str], inputs: Sequence[Any]) -> list[str]:
    """Return the layers that a prepared module rounds when it runs.

    A weight that is computed from a parameter is a layer of the program, and none of the module.
    """
    held = set(_weight_paths(model))
    prepared = Prepared(model, [name for name in names if name in held])
    with torch.no_grad():
        prepared.model(*(torch.as_tensor(each) for each in inputs))
    return [
        name
        for name, places in prepared.rounded.items()
        if any(not isinstance(each, FewBitWeight) or each.used for each in places)
    ]


def _squared_gradients(
    model: nn.Module, part: Examples, weights: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the squared gradients of the loss, summed over pieces of the examples."""
    sums = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    with torch.enable_grad():
        for start in range(0, len(part), GRADIENT_BATCH):
            piece = part[slice(start, start + GRADIENT_BATCH)]
            logits = _first(model(*map(from_numpy, piece.inputs)))
            labels = logits.argmax(-1) if piece.labels is None else from_numpy(piece.labels)
            loss = functional.cross_entropy(logits.flatten(0, -2), labels.flatten())
            found = cast(
                "tuple[Tensor | None, ...]",
                torch.autograd.grad(loss, list(weights.values()), allow_unused=True),
            )
            for name, gradient in zip(weights, found, strict=True):
                if gradient is not None:
                    sums[name] += gradient.detach() ** 2
    return sums


def _first(output: Any) -> Tensor:
    while not isinstance(output, Tensor):
        if isinstance(output, Mapping):
            output = next(iter(output.values()))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        elif isinstance(output, tuple | list) and output:
            output = output[0]  # pyright: ignore[reportUnknownVariableType]
        else:
            raise UsageError(
                f"the model gives a {type(output).__name__}, and not a tensor",  # pyright: ignore[reportUnknownArgumentType]
                hint="wrap it in a module that returns its logits",
            )
    return output


def fold(model: nn.Module, inputs: Sequence[Any]) -> nn.Module:
    """Return a copy in evaluation mode with batch norms folded, as in what is deployed."""
    from fewbit.quant.fusion import fuse_batch_norm

    model = copy.deepcopy(model).eval()
    if not any(isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) for m in model.modules()):
        return model
    tensors = tuple(torch.as_tensor(each) for each in inputs)
    try:
        return fuse_batch_norm(model, tensors, one_path=True).eval()
    except Error:
        return model


def _is_kept(scheme: LayerScheme) -> bool:
    """Return whether rounding the weight is apart from rounding what it is multiplied with."""
    return scheme.hadamard is None and not scheme.blocks


def _without_weight(scheme: LayerScheme) -> LayerScheme:
    return LayerScheme(act=scheme.act, static=scheme.static and scheme.act is not None)


def _places(model: nn.Module) -> Iterator[tuple[str, Rounded]]:
    """Yield all that rounds, by layer: a module, and its weight where functions may take it."""
    for name, layer in quantizable_layers(model).items():
        if isinstance(layer, QuantLayer):
            yield name, layer
    for module in model.modules():
        if isinstance(module, QuantScope):
            for weight in module.few_bit_weights.values():
                yield weight.name, weight


def _weight_paths(model: nn.Module) -> dict[str, str]:
    """Return the path of each layer's weight, by the layer's name."""
    paths = {layer_name(path): path for path in weights_of(model)}
    for name in quantizable_layers(model):
        paths[name] = "weight" if name == "weight" else f"{name}.weight"
    return paths
