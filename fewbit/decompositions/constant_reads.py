"""What Python reads from tensors that no input has a part in: a constant of the trace.

`if mask.any():` is a branch on data for torch.export, even where the mask follows from sizes and
parameters alone, as it does in models that pad their images. Such a model is run once on its
example inputs, and each tensor that depends on them is followed. What Python reads from any other
tensor is what it will read in every call of this size, and the trace is given that value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fewbit.base.typed_torch import write_counts

READS: frozenset[Any] = frozenset(
    getattr(Tensor, name) for name in ("__bool__", "__int__", "__float__", "__index__", "item")
)
"""How Python takes a number from a tensor."""
_LIKE = ("ones_like", "zeros_like", "full_like", "new_ones", "new_zeros", "new_full")
SIZES_ONLY: frozenset[Any] = frozenset(getattr(torch.ops.aten, name).default for name in _LIKE)
"""Ops that see of a tensor only how large it is."""


@dataclass(frozen=True)
class Read:
    """A number that Python took from a tensor."""

    function: Any
    value: Any
    is_constant: bool


def record_reads(
    model: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]
) -> Sequence[Read]:
    """Run the model, and return what is read in it; nothing if the call changes its buffers."""
    before = write_counts(model.buffers())
    follow = _Follow(tree_leaves((arguments, named)))
    record = _Record(follow)
    with torch.no_grad(), follow, record:
        model(*arguments, **named)
    return record.reads if write_counts(model.buffers()) == before else ()


class ReplaceReads:
    """Gives the values that were recorded, in the order of the trace, which is that of the run."""

    def __init__(self, reads: Sequence[Read]) -> None:
        self.left: Iterator[Read] = iter(reads)

    def value(self, function: Any, run: Callable[[], Any]) -> Any:
        read = next(self.left, None)
        if read is None or read.function is not function:
            self.left = iter(())
            return run()
        return read.value if read.is_constant else run()


class _Follow(TorchDispatchMode):
    """Knows the memory that depends on inputs, or on chance."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        cast(Any, super()).__init__()
        self.marked: set[StorageWeakRef] = set()
        self._mark(inputs)

    def depends(self, values: Sequence[Any]) -> bool:
        return any(_memory(value) in self.marked for value in values if isinstance(value, Tensor))

    def _mark(self, values: Sequence[Any]) -> None:
        self.marked.update(_memory(value) for value in values if isinstance(value, Tensor))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        operands = tree_leaves((args, kwargs))
        results = func(*args, **(kwargs or {}))
        if func in SIZES_ONLY:
            return results
        if self.depends(operands) or torch.Tag.nondeterministic_seeded in func.tags:
            self._mark(tree_leaves(results))
            if func._schema.is_mutable:
                self._mark(operands)
        return results


def _memory(tensor: Tensor) -> StorageWeakRef:
    return StorageWeakRef(cast(Any, tensor).untyped_storage())


class _Record(TorchFunctionMode):
    def __init__(self, follow: _Follow) -> None:
        super().__init__()
        self.follow = follow
        self.reads: list[Read] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        value = func(*args, **(kwargs or {}))
        if func in READS:
            self.reads.append(Read(func, value, not self.follow.depends(args[:1])))
        return value
