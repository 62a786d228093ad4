"""What feeds what in a torch model, at the grain of layers.

The model is run once on example inputs, under a dispatch mode that sees every tensor operation,
also those of scripted functions and custom autograd functions. Layers are recognized by forward
hooks, and a layer's output by the tensor object itself, which is held so that its identity cannot
be reused. A run was chosen over `torch.export` because it takes every model that runs, because
quantized layers stay one node whatever they compute inside, and because modules are seen as the
objects they are, under all their names. What a run cannot see, paths that other inputs would take,
is detected: the dataflow says where the model looks at the values of tensors.

`fewbit.quant.fusion.symbolic` makes the same dataflow without inputs.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fewbit.base.typed_torch import named_modules, own_parameters
from fewbit.quant.fusion.layers import Layer, is_layer
from fewbit.quant.fusion.running import Inputs, looking_at, run


@dataclass(eq=False)
class LayerCall:
    """One call of a layer, and who uses its output."""

    path: str
    layer: Layer
    source: LayerCall | None = None
    """The call whose output is this one's first argument, the very tensor."""
    users: list[LayerCall | str] = field(default_factory=list["LayerCall | str"])
    """Who uses the output: calls of layers, and other operations in words."""
    rank: int | None = None
    """The rank of the output, where it is known."""
    kept: bool = False
    """The output was still held after the run: returned by the model, or stored."""
    altered: bool = False
    """Forward hooks changed the output, so it is not what the layer alone computes."""

    def used_by(self, user: LayerCall | str) -> None:
        if user not in self.users:
            self.users.append(user)


@dataclass
class Dataflow:
    """The calls of a model's layers in the order of execution."""

    calls: list[LayerCall]
    stray: set[str]
    """Layers whose parameters are used outside of their own calls."""
    shared: set[str]
    """Layers whose parameters belong to another module as well."""
    reads_values: str | None = None
    """Where the model looks at values, so that other inputs might take another path."""

    def calls_of(self, layer: nn.Module) -> list[LayerCall]:
        return [call for call in self.calls if call.layer is layer]

    def why_not_change(self, path: str, layer: nn.Module) -> str | None:
        """Why this layer's parameters cannot be changed alone; None if they can."""
        if any(call.altered for call in self.calls_of(layer)):
            return f"forward hooks change the output of '{path}'"
        if "weight" not in own_parameters(layer):
            return f"the weight of '{path}' is computed, not a parameter of its own"
        if path in self.shared:
            return f"'{path}' shares a parameter with another module"
        if path in self.stray:
            return f"parameters of '{path}' are used outside of its own calls"
        return None


def trace(model: nn.Module, example_inputs: Inputs) -> Dataflow:
    """The dataflow of one run, in eval mode."""
    tracer = _Tracer(model)
    with looking_at(model), tracer.hooks(), tracer:
        result = run(model, example_inputs)
    tracer.release_outputs(result)
    return Dataflow(tracer.calls, tracer.stray, shared_parameters(model), tracer.reads_values)


def shared_parameters(model: nn.Module) -> set[str]:
    """Paths of modules with a parameter whose memory is another parameter's, too."""
    owners: dict[int, list[str]] = {}
    for path, module in named_modules(model):
        for parameter in own_parameters(module).values():
            if parameter is not None and not is_lazy(parameter) and parameter.numel():
                owners.setdefault(parameter.data_ptr(), []).append(path)
    return {path for paths in owners.values() if len(paths) > 1 for path in paths}


class _Tracer(TorchDispatchMode):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.calls: list[LayerCall] = []
        self.stray: set[str] = set()
        self.reads_values: str | None = None
        self._model = model
        self._paths = {module: path for path, module in named_modules(model)}
        self._owners = {
            id(parameter): path
            for path, module in named_modules(model)
            if is_layer(module)
            for parameter in own_parameters(module).values()
            if parameter is not None
        }
        self._producers: dict[int, LayerCall] = {}
        self._outputs: list[tuple[Tensor, LayerCall]] = []
        self._places: list[_Place] = []
        self._inside: LayerCall | None = None
        self._computed: tuple[Any, int] = (None, 0)

    def hooks(self) -> _Hooks:
        return _Hooks(self, self._model)

    def enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        path = self._paths[module]
        self._places.append(_Place(path, calls_layers=any(map(is_layer, module.modules()))))
        if self._inside is not None or not is_layer(module):
            return
        first = args[0] if args else next(iter(kwargs.values()), None)
        call = LayerCall(path, module, self._producers.get(id(first)))
        if call.source is not None:
            call.source.used_by(call)
        self.calls.append(call)
        self._inside = call

    def note_output(self, module: nn.Module, output: Any) -> None:
        """Note the output of `forward`, before the hooks of others see it."""
        if self._inside is not None and self._inside.layer is module:
            self._computed = (output, _version(output))

    def leave(self, module: nn.Module, output: Any) -> None:
        self._leave_place(self._places.pop(), output)
        call = self._inside
        if call is None or call.layer is not module:
            return
        self._inside = None
        computed, version = self._computed
        call.altered = output is not computed or _version(output) != version
        self._computed = (None, 0)
        if isinstance(output, Tensor):
            call.rank = output.ndim
            self._producers[id(output)] = call
            self._outputs.append((output, call))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        for tensor in _tensors(args, kwargs):
            self._note_use(tensor, func)
        if self._inside is None:
            self._note_reading(func, args)
        return func(*args, **kwargs)

    def _note_use(self, tensor: Tensor, func: Any) -> None:
        if (call := self._producers.get(id(tensor))) is not None:
            call.used_by(self._inside or self._describe(func))
        owner = self._owners.get(id(tensor))
        if owner is not None and (self._inside is None or self._inside.path != owner):
            self.stray.add(owner)

    def _note_reading(self, func: Any, args: Any) -> None:
        if _has_shape_by_values(func, args):
            self.reads_values = self.reads_values or self._describe(func)
        elif torch.Tag.data_dependent_output in func.tags and self._places:
            self._places[-1].reads = self._describe(func)

    def _leave_place(self, place: _Place, output: Any) -> None:
        """A module that calls no layer and gives tensors only cannot steer by what it reads."""
        steers = not all(isinstance(leaf, Tensor) for leaf in tree_leaves(output))
        if place.reads and (place.calls_layers or steers):
            self.reads_values = self.reads_values or place.reads

    def _describe(self, func: Any) -> str:
        place = self._places[-1].path if self._places else ""
        return f"{func._schema.name} in '{place}'" if place else f"{func._schema.name}"

    def release_outputs(self, result: Any) -> None:
        """Let go of all outputs, and mark those that are held elsewhere."""
        returned = {id(tensor) for tensor in tree_leaves(result)}
        watched = [
            (weakref.ref(output), id(output) in returned, call) for output, call in self._outputs
        ]
        self._outputs.clear()
        if any(output() is not None and not known for output, known, _ in watched):
            gc.collect()
        for output, _, call in watched:
            call.kept = output() is not None


@dataclass
class _Place:
    """A module that is being called."""

    path: str
    calls_layers: bool
    reads: str | None = None


class _Hooks:
    """Hooks on every module for the time of a `with` block."""

    def __init__(self, tracer: _Tracer, model: nn.Module) -> None:
        self._tracer = tracer
        self._model = model
        self._handles: list[Any] = []

    def __enter__(self) -> None:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
            self._tracer.enter(module, args, kwargs)

        def leave(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            self._tracer.leave(module, output)

        def note_output(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            self._tracer.note_output(module, output)

        for module in self._model.modules():
            self._handles += [
                module.register_forward_pre_hook(enter, with_kwargs=True),
                module.register_forward_hook(note_output, with_kwargs=True, prepend=True),
                module.register_forward_hook(leave, with_kwargs=True),
            ]

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()


def _version(output: Any) -> int:
    """Changes when the tensor is written to."""
    return output._version if isinstance(output, Tensor) and not output.is_inference() else 0


def _tensors(args: Any, kwargs: Any) -> Iterator[Tensor]:
    return (leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor))


def _has_shape_by_values(func: Any, args: Any) -> bool:
    """The shape of the operation's result depends on values: `nonzero`, `x[mask]`."""
    if torch.Tag.dynamic_output_shape not in func.tags:
        return False
    if func._schema.name != "aten::index":
        return True
    return any(index.dtype in (torch.bool, torch.uint8) for index in _tensors(args[1:], {}))
