"""`fewbit.jit`: a model or function that is compiled when it is called, and leaves no files.

A call with new shapes or types compiles again; what was compiled is kept. Arguments may be numpy
arrays or torch tensors, in any structure that PyTorch knows; other values are constants, and new
ones compile again too. Weights are taken as they are when a version is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fewbit.errors import UnsupportedError, UsageError
from fewbit.program.program import Program

if TYPE_CHECKING:
    import torch

    from fewbit.frontends import Model
    from fewbit.quant.calibration import Calibration
    from fewbit.quant.recipe import RecipeLike
    from fewbit.targets.target import Inserted

Array = np.ndarray[Any, Any]


def jit(
    model: Model | Callable[..., Any],
    example_inputs: Sequence[Any] | None = None,
    recipe: RecipeLike | None = None,
    *,
    calibration: Calibration | None = None,
    dynamic_shapes: Any = None,
    passes: Inserted | None = None,
    threads: int = 1,
) -> Jit:
    """Return a callable that compiles `model` for the shapes it is called with.

    A function of tensors will do as a model, so this is a decorator too. With `example_inputs` the
    first version is compiled at once. With `dynamic_shapes`, as for `torch.export`, one version
    serves all sizes.
    """
    compiled = Jit(model, recipe, calibration, dynamic_shapes, passes, threads)
    if example_inputs is not None:
        compiled.prepare(*example_inputs)
    return compiled


class Jit:
    """A model that is compiled as it is called."""

    def __init__(
        self,
        model: Model | Callable[..., Any],
        recipe: RecipeLike | None = None,
        calibration: Calibration | None = None,
        dynamic_shapes: Any = None,
        passes: Inserted | None = None,
        threads: int = 1,
    ) -> None:
        from fewbit.quant.recipe import Recipe

        self.model = model
        self.recipe = None if recipe is None else Recipe.of(recipe)
        self.calibration = calibration
        self.dynamic_shapes = dynamic_shapes
        self.passes = passes
        self.threads = threads
        self._versions: dict[Any, _Version] = {}
        if callable(model) and not isinstance(model, Program):
            update_wrapper(self, model, updated=())

    @property
    def versions(self) -> int:
        """How many versions were compiled."""
        return len(self._versions)

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Compile for such arguments, if that was not done before."""
        self._version(*_take_apart((args, kwargs)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = _take_apart((args, kwargs))
        version = self._version(leaves, structure)
        arrays = [leaf for leaf in leaves if _is_array(leaf)]
        outputs = version.run(*arrays, threads=self.threads)
        return version.rebuild(_like(arrays, outputs))

    def _version(self, leaves: list[Any], structure: Any) -> _Version:
        key = self._key(leaves, structure)
        if key not in self._versions:
            self._versions[key] = self._compile(leaves, structure)
        return self._versions[key]

    def _key(self, leaves: list[Any], structure: Any) -> Any:
        """Return what a compiled version depends on."""
        if self._is_named:
            return None
        described = tuple(_describe(leaf, self.dynamic_shapes is not None) for leaf in leaves)
        return described, structure

    @property
    def _is_named(self) -> bool:
        """Whether the model has its shapes already: it is a program, or the text names one."""
        return (
            isinstance(self.model, str | Path | Program)
            or not callable(self.model)
            or hasattr(self.model, "graph_signature")
        )

    def _compile(self, leaves: list[Any], structure: Any) -> _Version:
        if self._is_named:
            return _Version(_load(self._artifact_of(self.model)), None, ())
        from torch.utils._pytree import tree_unflatten

        module = _as_module(self.model)
        plain = tree_unflatten([_as_tensor(leaf) for leaf in leaves], structure.spec)
        args, kwargs = structure.close(plain)
        program = self._import(module, args, kwargs)
        given = sum(_is_array(leaf) for leaf in leaves)
        if len(program.signature.inputs) != given:
            raise UnsupportedError(
                "the model updates buffers, and a compiled function keeps no state",
                hint="fewbit.compile gives them as inputs and outputs behind the model's own",
            )
        result, outputs = _outputs_of(module, args, kwargs)
        return _Version(_load(self._artifact_of(program)), result, outputs)

    def _import(
        self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Program:
        from fewbit.base.progress import progress
        from fewbit.frontends import import_model

        with progress(f"Importing {type(module).__name__}"):
            return import_model(module, args, self.dynamic_shapes, example_kwargs=kwargs)

    def _artifact_of(self, model: Any) -> Callable[[Path], Any]:
        from fewbit.targets.compile import compile

        return lambda folder: compile(
            model,
            "cpu",
            folder,
            name="jit",
            recipe=self.recipe,
            calibration=self.calibration,
            passes=self.passes,
        )


@dataclass(frozen=True)
class _Version:
    run: Any
    structure: _Structure | None
    """That of what the model returns; None where it is not known."""
    outputs: Sequence[bool]
    """For each part of it, whether it is a tensor (else it is None)."""

    def rebuild(self, arrays: Sequence[Any]) -> Any:
        if self.structure is None:
            return arrays[0] if len(arrays) == 1 else tuple(arrays)
        from torch.utils._pytree import tree_unflatten

        left = iter(arrays)
        leaves = [next(left) if known else None for known in self.outputs]
        return self.structure.close(tree_unflatten(leaves, self.structure.spec))


def _load(compile_into: Callable[[Path], Any]) -> Any:
    """Load the library; its files are gone afterwards."""
    with TemporaryDirectory(prefix="fewbit-jit-") as folder:
        return compile_into(Path(folder) / "jit").runner


@dataclass(frozen=True)
class _Structure:
    """Arguments or results without what is in them."""

    spec: Any
    fixed: tuple[Any, ...]
    """Constants in objects that PyTorch does not know."""
    close: Callable[[Any], Any] = field(compare=False)
    """Makes such objects of the plain structure."""


def _take_apart(value: Any) -> tuple[list[Any], _Structure]:
    from torch.utils._pytree import tree_flatten

    from fewbit.frontends.torch.structure import fixed_parts, open_objects

    plain, close = open_objects(value)
    leaves, spec = tree_flatten(plain)
    return leaves, _Structure(spec, fixed_parts(value), close)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or _is_tensor(value)


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _as_tensor(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    copy = np.array(cast(Array, value))  # torch warns of read-only memory
    return to_torch(copy)


def _describe(leaf: Any, any_size: bool) -> Any:
    if not _is_array(leaf):
        try:
            hash(leaf)
        except TypeError:
            raise UsageError(
                f"an argument of type {type(leaf).__name__} is neither an array nor a constant"
            ) from None
        return type(leaf), leaf
    shape = len(leaf.shape) if any_size else tuple(leaf.shape)
    return str(leaf.dtype).removeprefix("torch."), shape


def _as_module(model: Any) -> torch.nn.Module:
    import torch

    if isinstance(model, torch.nn.Module):
        return model

    class Function(torch.nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return model(*args, **kwargs)

    return Function()


def _outputs_of(
    module: torch.nn.Module, args: Any, kwargs: Any
) -> tuple[_Structure, tuple[bool, ...]]:
    """Return the structure of what a module returns, and which parts of it are tensors."""
    import torch

    from fewbit.frontends.torch.structure import clone_tensors

    args, kwargs = clone_tensors((args, kwargs))
    modes = {each: each.training for each in module.modules()}
    try:
        module.eval()
        with torch.no_grad():
            leaves, structure = _take_apart(module(*args, **kwargs))
    finally:
        for each, mode in modes.items():
            each.training = mode
    return structure, tuple(isinstance(leaf, torch.Tensor) for leaf in leaves)


def _like(arrays: Sequence[Any], outputs: Sequence[Any]) -> Sequence[Any]:
    """Return outputs of the inputs' kind (arrays or tensors), and where the inputs are."""
    first = next((array for array in arrays if _is_tensor(array)), None)
    if first is None:
        return outputs
    return [to_torch(output).to(first.device) for output in outputs]


def to_torch(array: Array) -> torch.Tensor:
    """Return the array as a tensor that shares its memory."""
    import torch

    share = cast(Any, torch).from_numpy  # torch's own types leave its argument out
    if str(array.dtype) == "bfloat16":
        return share(array.view(np.int16)).view(torch.bfloat16)
    return share(array)
