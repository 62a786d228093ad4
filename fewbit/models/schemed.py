"""Models that take MiCo's schemes by a method, as its own models do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from torch import nn


class Schemed(nn.Module):
    """A model whose layers can be given their widths: `fewbit.mico` says how."""

    def set_qscheme(self, scheme: Sequence[Sequence[float]]) -> Self:
        from fewbit.quant.torch.qscheme import set_qscheme

        set_qscheme(self, scheme)
        return self

    def unset_qscheme(self) -> Self:
        from fewbit.quant.torch.qscheme import unset_qscheme

        unset_qscheme(self)
        return self
