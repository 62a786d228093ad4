"""Functions of torch that are written otherwise while it traces.

Those here read sizes as numbers, which would fix them, or are written out step by step. They are
replaced by others of the same results before torch sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from torch.overrides import TorchFunctionMode

from fewbit.decompositions.constant_reads import READS, Read, ReplaceReads
from fewbit.decompositions.packed_sequences import packed_functions
from fewbit.decompositions.recurrent import recurrent_functions


class ReplaceFunctions(TorchFunctionMode):
    """Calls the functions of the table below in place of torch's, and gives what was read."""

    def __init__(self, reads: Sequence[Read] = ()) -> None:
        super().__init__()
        self.reads = ReplaceReads(reads)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in READS:
            return self.reads.value(func, lambda: func(*args, **(kwargs or {})))
        run: Callable[..., Any] = REPLACEMENTS.get(func) or func
        return run(*args, **(kwargs or {}))


def max_pool1d(
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Pool images of one row: the check of sizes in torch's own function takes numbers only."""
    if return_indices:
        return cast(Any, F).max_pool1d_with_indices(
            x, kernel_size, stride, padding, dilation, ceil_mode
        )

    def pair(value: Any, along_rows: int) -> list[int]:
        return [along_rows, value if isinstance(value, int) else value[0]]

    kernel = pair(kernel_size, 1)
    steps = pair(stride, 1) if stride not in (None, [], ()) else kernel
    rows = cast(Any, F).max_pool2d(
        x.unsqueeze(-2), kernel, steps, pair(padding, 0), pair(dilation, 1), ceil_mode
    )
    return rows.squeeze(-2)


_torch = cast(Any, torch)

REPLACEMENTS: dict[Any, Callable[..., Any]] = {
    F.max_pool1d: max_pool1d,
    _torch.max_pool1d: max_pool1d,
    **packed_functions(),
    **recurrent_functions(),
}
