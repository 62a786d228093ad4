"""Functions of torch that its own annotations leave half typed, with their whole types.

torch carries its types inline, and many parameters and results have none: strict checking then
reports each use. They are typed here once, so that no file that calls them opts out. This module
imports torch, so import it only where torch is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

_torch = cast(Any, torch)


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor that shares the array's memory."""
    return _torch.from_numpy(array)


def manual_seed(seed: int) -> torch.Generator:
    """Seed the generators of all devices, and return the CPU's."""
    return _torch.manual_seed(seed)


def fork_rng(devices: Sequence[int] | None = None) -> AbstractContextManager[None]:
    """Within the context, draws leave the generators of the CPU and of these devices as they were.

    None stands for all devices.
    """
    return _torch.random.fork_rng(devices)


def backward(loss: Tensor) -> None:
    """Add the gradient of a scalar to the tensors that it depends on."""
    cast(Any, loss).backward()


def update(optimizer: torch.optim.Optimizer) -> None:
    """Update the parameters by their gradients."""
    cast(Any, optimizer).step()


def split(tensor: Tensor, size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Chunks of one size, or of the given sizes, along a dimension."""
    return cast(Any, tensor).split(size, dim)


def unflatten(tensor: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """A dimension as several of these sizes, one of which may be -1."""
    return cast(Any, tensor).unflatten(dim, tuple(sizes))


def run_decompositions(
    program: ExportedProgram, table: Mapping[Any, Callable[..., Any]]
) -> ExportedProgram:
    """A program whose ops are what their decompositions compute."""
    return cast(Any, program).run_decompositions(table)


def sym_min(a: int, b: int) -> int:
    """The smaller of two sizes; `min` would decide which that is while a model is traced."""
    return _torch.sym_min(a, b)


def sym_max(a: int, b: int) -> int:
    """The larger of two sizes."""
    return _torch.sym_max(a, b)


def norm(tensor: Tensor) -> float:
    """The Frobenius norm."""
    return cast(Any, tensor).norm().item()


def named_modules(
    model: nn.Module, *, remove_duplicate: bool = True
) -> Iterator[tuple[str, nn.Module]]:
    """The module itself and all inside it, by path."""
    return cast(Any, model).named_modules(remove_duplicate=remove_duplicate)


def named_parameters(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Parameters of a module and all inside it, by path."""
    return cast(Any, module).named_parameters()


def own_parameters(module: nn.Module) -> dict[str, nn.Parameter | None]:
    """Parameters of a module itself, including those registered as None. The dict is live."""
    return cast(Any, module)._parameters


def own_buffers(module: nn.Module) -> dict[str, Tensor | None]:
    """Buffers of a module itself, including those registered as None. The dict is live."""
    return cast(Any, module)._buffers


def forward_hooks(module: nn.Module) -> dict[int, Callable[..., Any]]:
    """Hooks that run behind `forward`, by their handles' ids. The dict is live."""
    return cast(Any, module)._forward_hooks


def forward_pre_hooks(module: nn.Module) -> dict[int, Callable[..., Any]]:
    """Hooks that run before `forward`, by their handles' ids. The dict is live."""
    return cast(Any, module)._forward_pre_hooks


def attributes(module: nn.Module) -> dict[str, Any]:
    """A module's attributes, as `vars` gives them. The dict is live."""
    return vars(module)


def write_counts(tensors: Iterable[Tensor]) -> list[int]:
    """Return how often each tensor was written to; those made for inference alone do not tell."""
    return [0 if tensor.is_inference() else tensor._version for tensor in tensors]
