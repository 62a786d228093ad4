"""PyTorch, which runs the model as it is, in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fewbit.bench.case import Array, Case
from fewbit.bench.peers.peer import Peer, Session


class Eager(Peer):
    """PyTorch in eager mode."""

    makes_files = False

    def packages(self, quantized: bool) -> tuple[str, ...]:
        return ("torch",)

    def variants(self, quantized: bool) -> tuple[str, ...]:
        return ("float32",)

    def build(self, case: Case, variant: str, folder: Path) -> None:
        """Do nothing: the case has its files already."""

    def open(self, case: Case, variant: str, folder: Path, threads: int) -> Session:
        run = torch_eager(case.module(), case.tensors(), threads)
        return Session(run, lambda: arrays_of(run()))


def torch_eager(model: Any, inputs: tuple[Any, ...], threads: int) -> Callable[[], Any]:
    import torch

    torch.set_num_threads(threads)

    def run() -> Any:
        with torch.inference_mode():
            return model(*inputs)

    return run


def arrays_of(result: Any) -> Sequence[Array]:
    """Return all tensors of what a model gave, in whatever it puts them."""
    from torch.utils._pytree import tree_leaves

    return [leaf.detach().numpy() for leaf in tree_leaves(result) if hasattr(leaf, "detach")]
